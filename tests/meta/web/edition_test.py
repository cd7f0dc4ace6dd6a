"""What the web edition's extension (tools/web/edition) decides, on right and on wrong examples."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/web"))
from edition import (contents, excerpts, glossary, predictions, recordings,  # noqa: E402
                     sources)


class Tree(unittest.TestCase):
    """A test with a book of its own: files by path, with their text."""

    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root


class Excerpts(Tree):

    def test_lines_whatever_the_indentation(self):
        text = "a\n  b {\n    c\n  }\nb {\n"
        self.assertEqual(excerpts.find_lines(text, "b {\n  c\n}"), (2, 4))
        self.assertEqual(excerpts.find_lines(text, "a"), (1, 1))


class Glossary(unittest.TestCase):

    def test_entries_as_plain_text_with_their_forms(self):
        text = ('# Glossary\n\n- <a id="rank"></a>**rank** ([05](05_ranks)): A *program* with\n'
                '  `one` device, see\n  [world](x).\n'
                '- <a id="a-b"></a>**a b** ([06](06)): Two. <!-- checked as: a b, bs -->\n'
                '- <a id="c"></a>**`c`** ([06](06)): Three.\n  <!-- not checked -->\n- no entry\n')
        self.assertEqual(glossary.entries(text), {
            "rank": glossary.Entry("A program with one device, see world.", "05",
                                   ("rank", "ranks")),
            "a-b": glossary.Entry("Two.", "06", ("a b", "bs")),
            "c": glossary.Entry("Three.", "06", ())})

    def test_first_uses(self):
        known = {"ring": glossary.Entry("", "09", ("ring", "rings")),
                 "ring-buffer": glossary.Entry("", "06", ("ring buffer",))}
        text = "A string, a Ring buffer, my-ring, rings and a ring."
        found = [(text[begin:end], anchor) for begin, end, anchor in glossary.uses(text, known)]
        self.assertEqual(found, [("Ring buffer", "ring-buffer"), ("rings", "ring")])
        self.assertEqual(list(glossary.uses(text, {})), [])


class Sources(Tree):

    def test_each_line_has_its_place(self):
        html = sources.highlighted("/* a <b>\n   c */\nint d;\n\n", ".cpp")
        self.assertEqual(html.count("<b id=L"), 3)
        self.assertIn("<b id=L1><i class=c1>/* a &lt;b&gt;</i>\n</b>", html)
        self.assertIn("<b id=L3><i class=k>int</i> d;\n</b>", html)

    def test_neighbours_of_one_class_are_one_element(self):
        html = sources.highlighted('f("a", 1);\n"b"\n', ".cpp")
        self.assertIn('<b id=L1>f(<i class=s>"a"</i>, <i class=m>1</i>);\n</b>', html)
        self.assertIn('<b id=L2><i class=s>"b"</i>\n</b>', html)

    def test_pages_are_of_what_is_read_first_and_of_excerpts(self):
        table = "| ● | [a](a.cu), [gone](g.cu) | x |\n| | [b](b/c.cpp) | y |\n"
        quoted = "<!-- excerpt: 01/b/d.hpp: int d -->\n"
        root = self.tree({"chapters/01/README.md": table + quoted, "chapters/01/a.cu": "",
                          "chapters/01/b/c.cpp": "", "chapters/01/b/d.hpp": ""})
        self.assertEqual(sources.first_reading(root, "chapters/01/b/c.cpp"), ["chapters/01/a.cu"])
        self.assertEqual(sources.shown(root), {"chapters/01/a.cu", "chapters/01/b/d.hpp"})


class Contents(unittest.TestCase):
    overview = ("| | chapter | needs |\n|---|---|---|\n| 00 | [tiny](00_tiny) | |\n"
                "| | **I. One device** | |\n| 01 | [sgd](01_sgd) | |\n"
                "| 02 | [kernels](02_kernels) | 01 |\n")

    def test_parts(self):
        self.assertEqual(contents.parts(self.overview),
                         [("", ["00_tiny"]), ("I. One device", ["01_sgd", "02_kernels"])])

    def test_a_chapter_has_a_subject_and_neighbours(self):
        self.assertEqual(contents.neighbours(self.overview),
                         {"00_tiny": ("00 All on one page", [], []),
                          "01_sgd": ("01 SGD", [], ["02"]),
                          "02_kernels": ("02 Kernels", ["01"], [])})

class Predictions(unittest.TestCase):

    def test_no_value_ends_its_script(self):
        self.assertEqual(predictions.json_script("<!--<script>").count("<"), 2)


class Recordings(unittest.TestCase):

    def test_digits_that_no_picture_shows_are_left_out(self):
        csv = 'name,ms\n"a 1.2345678901",1.23456789\n1,-0.000012345678e+2\n2.5,2.50000001\n'
        self.assertEqual(recordings.shortened(csv),
                         'name,ms\n"a 1.2345678901",1.234568\n1,-0.001234568\n2.5,2.5\n')


if __name__ == "__main__":
    unittest.main()
