"""What the web edition's extension (tools/web/edition) decides, on right and on wrong examples."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/web"))
from edition import (contents, excerpts, glossary, links, names, predictions,  # noqa: E402
                     recordings, sources)


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


class Links(Tree):

    def setUp(self):
        self.root = self.tree(dict.fromkeys((
            "README.md", "chapters/01/README.md", "chapters/01/a.cu", "chapters/01/show/b.cpp",
            "chapters/words.md", "solutions/01/NOTES.md", "tests/bench/01/c.cpp"), ""))

    def target(self, docname, link):
        pages = {"README.md", "chapters/01/README.md", "chapters/words.md"}
        return links.target_of(self.root, docname, link, pages.__contains__)

    def test_page_by_its_file_or_its_folder(self):
        page = links.Target("page", "chapters/01/README")
        self.assertEqual(self.target("README", "chapters/01"), page)
        self.assertEqual(self.target("README", "chapters/01/"), page)
        self.assertEqual(self.target("chapters/words", "01/README.md"), page)
        self.assertEqual(self.target("chapters/01/README", "../.."), links.Target("page", "README"))

    def test_anchor_stays(self):
        self.assertEqual(self.target("chapters/01/README", "../words.md#rank"),
                         links.Target("page", "chapters/words", "rank"))

    def test_file_and_folder_without_a_page(self):
        for path in ("chapters/01/a.cu", "chapters/01/show"):
            self.assertEqual(self.target("README", path), links.Target("source", path))

    def test_left_out_whether_it_is_there_or_not(self):
        for link in ("../solutions/01/NOTES.md", "../tests", "../tests/bench/01", "../my/01"):
            self.assertEqual(self.target("chapters/words", link).kind, "text")

    def test_dead(self):
        for link in ("gone.cu", "../../..", "../../../elsewhere/a.cu", "README"):
            self.assertEqual(self.target("chapters/01/README", link).kind, "dead", link)


class Excerpts(Tree):

    def test_lines_whatever_the_indentation(self):
        text = "a\n  b {\n    c\n  }\nb {\n"
        self.assertEqual(excerpts.find_lines(text, "b {\n  c\n}"), (2, 4))
        self.assertEqual(excerpts.find_lines(text, "a"), (1, 1))

    def test_stale(self):
        self.assertIsNone(excerpts.find_lines("a\nb\n", "b\na"))


class Glossary(unittest.TestCase):

    def test_entries_as_plain_text(self):
        text = ('# Glossary\n\n- <a id="rank"></a>**rank** ([05](05_ranks)): A *program* with\n'
                '  `one` device, see\n  [world](x). <!-- not checked -->\n'
                '- <a id="a-b"></a>**a b** ([06](06)): Two.\n- no entry\n')
        self.assertEqual(glossary.entries(text),
                         {"rank": "A program with one device, see world.", "a-b": "Two."})


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


class Names(Tree):

    def test_declared_outside_of_classes(self):
        text = ("struct Slice;\nclass Ring final {\n    int inside(int);\nstd::size_t bytes_of();\n"
                "void Ring::send(int) {\n// void talk(int)\nreturn_value(3);\nint main() {\n"
                "template <typename T> struct Box {\n")
        self.assertEqual([name for name, _ in names.declared(text)], ["Ring", "bytes_of", "Box"])

    def test_a_header_wins_and_a_name_with_two_births_has_none(self):
        files = {"a.hpp": "void both(int);\nvoid ring(int);\n", "b.hpp": "\nvoid both(int);\n",
                 "c.cu": "void ring(int) {\nvoid own(int) {\n"}
        found = names.births(self.tree(files), list(files))
        self.assertEqual(found, {"a.hpp": {"ring": 2}, "c.cu": {"own": 2}})


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

    def test_every_page_stands_somewhere(self):
        bench, task = "tests/bench/01_sgd/README", "exercises/01_sgd/README"
        docs = {"README", "CREDITS", "chapters/README", "chapters/glossary", "common/README",
                "chapters/00_tiny/README", "chapters/01_sgd/README", bench, task,
                "exercises/01_sgd/labs/sheet"}
        menu = contents.menu(docs, self.overview)
        listed = {line[1:] for line in menu.splitlines() if line.startswith("/")}
        below = {doc for parent in docs for doc in contents.below(parent, docs)}
        self.assertEqual(listed | below | {"README"}, docs)
        self.assertEqual(contents.below("chapters/01_sgd/README", docs), [bench, task])
        self.assertEqual(contents.below(task, docs), ["exercises/01_sgd/labs/sheet"])


class Predictions(unittest.TestCase):

    def test_first_match(self):
        lines = ["server 3 GB", "ring  12.5 MB   1.50", "ring  13 MB   9"]
        self.assertEqual(predictions.first_match(r"ring +[0-9.]+ [A-Z]+ +([0-9.]+)", lines), "1.50")
        self.assertIsNone(predictions.first_match("^tree ([0-9]+)", lines))

    def test_no_value_ends_its_script(self):
        self.assertEqual(predictions.json_script("<!--<script>", "id=a").count("<"), 2)

    def test_the_last_of_the_readers_own_counts(self):
        kept = predictions.own_measurements("1. 3 (arrays)\n2. x\n1. 4 (arrays)\n")
        self.assertEqual(kept, {"1": "4 (arrays)", "2": "x"})


class Recordings(Tree):

    def test_the_readers_own_run_comes_first(self):
        reference = "plots/reference/sgd.csv"
        root = self.tree({reference: "a\n"})
        self.assertEqual(recordings.source_of(root, "sgd"), (root / reference, False))
        (root / "out").mkdir()
        (root / "out/sgd.csv").write_text("b\n")
        self.assertEqual(recordings.source_of(root, "sgd"), (root / "out/sgd.csv", True))

    def test_runs_of_other_numbers_of_ranks_come_behind(self):
        reference, made = "plots/reference/ring.csv", "build/web/recordings/ring_8_ranks.csv"
        root = self.tree({reference: "a\n", made: "c\n", "out/ring.csv": "b\n"})
        (own, day), *others = recordings.runs_of(root, "ring")
        self.assertEqual(own, root / "out/ring.csv")
        self.assertRegex(day, r"^\d{4}-\d\d-\d\d$")
        self.assertEqual(others, [(root / reference, ""), (root / made, day)])
        (root / "out/ring.csv").unlink()
        self.assertEqual(recordings.runs_of(root, "ring"), others)

    def test_digits_that_no_picture_shows_are_left_out(self):
        csv = 'name,ms\n"a 1.2345678901",1.23456789\n1,-0.000012345678e+2\n2.5,2.50000001\n'
        self.assertEqual(recordings.shortened(csv),
                         'name,ms\n"a 1.2345678901",1.234568\n1,-0.001234568\n2.5,2.5\n')

    def test_columns(self):
        self.assertEqual(recordings.lacking('step,"loss"\n1,2\n', ("step", "loss", "w1")), ["w1"])


if __name__ == "__main__":
    unittest.main()
