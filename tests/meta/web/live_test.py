"""The kernels that run in chapter 02's page, in a Chromium: live_test.py SITE SCREENSHOTS KERNELS

KERNELS is the program that `./book run 02` starts: in the same order of threads, both must come to
the same numbers.
"""
import os
import re
import subprocess
import sys
import unittest

from browser_test import ROOT, SHOTS, SITE, Browser
from selenium.webdriver.common.keys import Keys

PAGE = "chapters/02_kernels/README.html"
ORDERS = ["forward", "reversed"] + [f"random:{seed}" for seed in range(6)]


def printed_tables(order):
    """Returns the tables that the chapter's run prints, by their titles: rows, and the note."""
    ordered = os.environ | {"CUDA_ON_CPU": f"order={order}"}
    said = subprocess.check_output([sys.argv[3], "--quick"], env=ordered, text=True)
    tables = re.findall(r"^(.+)\n─+\n.+\n─+\n((?:.+\n)+?)─+\n(.*)", said, re.M)
    return {title: ([row.split() for row in rows.splitlines()], note)
            for title, rows, note in tables}


class Live(Browser):

    def setUp(self):
        super().setUp()
        self.open(PAGE)

    def figure(self, program):
        return self.find(f"figure.live[data-program={program}]")

    def runs(self, program, order="forward", without=(), **values):
        """Chooses and runs; returns the result, and what is said in the end."""
        values["order"], _, seed = order.partition(":")
        values["seed"] = int(seed or 0)
        script = """
            const [figure, values, without, done] = arguments, live = figure.live;
            live.without = new Set(without);
            live.choose(values).then(() =>
              done([live.run.result, live.sentence(live.last), [...live.run.lines]]));"""
        figure = self.figure(program)
        return self.browser.execute_async_script(script, figure, values, list(without))

    def barriers(self):
        return sorted(self.runs("tree", kernel=1)[2])

    def take(self, program, *numbers):
        """Gives these threads their turns, by hand."""
        for number in numbers:
            result = self.browser.execute_async_script("""
                const [{ live }, number, done] = arguments;
                live.take(number).then(() => done([live.run.result, live.sentence(live.last)]));""",
                                                       self.figure(program), number)
        return result

    def test_sums_are_those_of_the_run(self):
        without_barriers, sums = [max(self.barriers())], set()
        for order in ORDERS:
            printed = printed_tables(order)
            _, tree = printed["The same kernel without these barriers"]
            _, race = printed["Two threads, one sum, without an atomic"]
            with self.subTest(order=order):
                (total,), says, _ = self.runs("tree", order, without_barriers, kernel=1, threads=8,
                                              eachAccess=False)
                sums.add(total)
                self.assertIn(tree, says)
                self.assertIn(race, self.runs("race", order, kernel="race", atomic=0,
                                              eachAccess=False)[1])
        self.assertGreater(len(sums), 2, "these orders do not differ")

    def test_who_computes_what_is_as_in_the_run(self):
        tables = printed_tables("forward")
        for how, blocks, threads in (("By index", 3, 4), ("By grid_range", 2, 2)):
            size = f"({blocks} blocks of {threads} threads)"
            (block_row, thread_row), _ = tables[f"{how}: element i is computed by ... {size}"]
            places = self.runs("vector_add", kernel=how.lower().replace(" ", "_"), n=10,
                               blocks=blocks, threads=threads)[0]
            self.assertEqual([str(place) for place in places[0::2]], block_row[1:])
            self.assertEqual([str(place) for place in places[1::2]], thread_row[1:])
        says = self.runs("vector_add", kernel="by_index", n=10, blocks=2, threads=4)[1]
        self.assertIn("No thread has computed elements 8 and 9.", says)
        sums = self.runs("vector_add", "reversed", kernel="add", n=16, threads=5)[0]
        self.assertEqual(sums, [11 * i for i in range(1, 17)])

    def test_a_barrier_that_is_taken_away(self):
        before_loop, _ = self.barriers()
        for kernel, threads in ((1, 32), (0, 16)):
            right = f"The sum is {threads * (threads + 1) // 2};"
            for each in (True, False):
                for order in ("forward", "reversed", "random"):
                    says = self.runs("tree", order, kernel=kernel, threads=threads,
                                     eachAccess=each)[1]
                    self.assertIn(right, says)
                    self.assertIn("Nothing races.", says)
        # As the chapter says: without the barrier before the loop, reversed is right by chance.
        says = [self.runs("tree", order, [before_loop], kernel=1, threads=8, eachAccess=False)[1]
                for order in ("forward", "reversed")]
        self.assertNotIn("The sum is 36", says[0])
        self.assertIn("The sum is 36; right is 36.", says[1])
        self.assertIn("accesses race: in another order", says[1])

    def test_additions_are_lost_but_for_atomics(self):
        for kernel, right in (("race", 3), ("ones", 6)):
            lost, kept = ({self.runs("race", order, kernel=kernel, atomic=atomic, additions=3,
                                     eachAccess=True)[0][0] for order in ORDERS[:4]}
                          for atomic in (0, 1))
            self.assertEqual(kept, {right})
            self.assertTrue(lost - {right}, "nothing is lost")

    def test_a_task_that_is_solved_is_said_to_be(self):
        self.runs("race", "hand", kernel="race", atomic=0, eachAccess=False)
        _, says = self.take("race", 0, 1, 1, 0)
        self.assertIn("The sum is 1; right is 3.", says)
        self.assertIn("You have solved the task.", says)
        self.assertNotIn("solved", self.runs("race", kernel="race", atomic=0)[1])
        barriers = [[line] for line in self.barriers()]
        solved = ["solved" in self.runs("tree", order, without, kernel=1, threads=8)[1]
                  for without in barriers for order in ORDERS]
        self.assertTrue(any(solved))

    def test_each_thread_stands_on_its_line(self):
        source = (ROOT / "chapters/02_kernels/tree.cu").read_text().splitlines()
        self.runs("tree", kernel=1, threads=4, eachAccess=False)
        figure = self.figure("tree")
        self.run_in_page("arguments[0].live.go(3)", figure)
        stand = self.run_in_page("""
            return [...arguments[0].querySelectorAll(".kernel span")].map(line =>
              [line.dataset.threads, line.dataset.line, line.textContent.trimEnd(), line.className])
        """, figure)
        self.assertEqual([line for _, _, line, _ in stand],
                         source[int(stand[0][1]) - 1:int(stand[-1][1])])
        there = [(threads, line.strip(), shown) for threads, _, line, shown in stand if threads]
        self.assertEqual(there, [("0 1 2", "__syncthreads();", "shown")])
        self.runs("tree", kernel=1, threads=4, eachAccess=True)
        self.run_in_page("arguments[0].live.go(1)", figure)
        line = self.ask("arguments[0].querySelector('.kernel .shown').textContent", figure)
        self.assertEqual(line.strip(), "partial[thread] = values[thread];")

    def test_by_hand_with_the_keyboard(self):
        self.runs("tree", "hand", kernel=1, threads=4, eachAccess=False)
        figure = self.figure("tree")

        def button(number):
            return figure.find_elements("css selector", ".hand button")[number]

        for turn, thread in enumerate((2, 0, 3, 1), 1):
            button(thread).send_keys(Keys.ENTER)
            self.until("a turn", "arguments[0].live.last === arguments[1]", figure, turn)
            self.assertTrue(self.ask("document.activeElement === arguments[0]", button(thread)))
        button(2).send_keys(Keys.ENTER, Keys.ENTER)  # the second time it waits at the barrier
        self.until("a turn", "arguments[0].live.last === 5", figure)
        self.assertEqual(button(2).get_attribute("aria-disabled"), "true")
        # Another one at an earlier turn: what came after it is forgotten.
        self.run_in_page("arguments[0].focus()", figure)
        figure.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        button(1).send_keys(Keys.ENTER)
        self.until("a turn", "arguments[0].live.last === 4 && !arguments[0].live.timer", figure)
        figure.send_keys(Keys.ARROW_RIGHT)
        self.until("a turn", "arguments[0].live.last === 5", figure)

    def test_every_figure_draws_each_turn(self):
        for name in ("vector_add", "race", "tree"):
            figure = self.figure(name)
            for step in range(1 + self.ask("arguments[0].live.last", figure)):
                self.run_in_page("arguments[0].live.go(arguments[1])", figure, step)
                shown = self.says(figure) + self.drawn(figure)
                self.assertNotRegex(shown, "NaN|undefined|Infinity|null")
            for width in (1280, 390):
                self.window(width)
                self.assertEqual(self.ask("document.documentElement.scrollWidth"), width)
                self.run_in_page("arguments[0].scrollIntoView()", figure)
                self.browser.save_screenshot(str(SHOTS / f"live_{name}_{width}.png"))

    def test_a_choice_by_keyboard_keeps_the_focus(self):
        figure = self.figure("tree")
        order = figure.find_element("css selector", "select[name=order]")
        self.run_in_page("arguments[0].focus()", order)
        order.send_keys("r")
        self.until("another order", "arguments[0].live.values.order === 'reversed'", figure)
        box = figure.find_elements("css selector", "input[type=checkbox]")[1]
        box.send_keys(Keys.SPACE)
        self.until("a barrier less", "arguments[0].live.run.settings.without.length === 1", figure)
        self.assertTrue(self.ask("document.activeElement === arguments[0]", box))

    def test_a_browser_that_cannot_suspend_says_so(self):
        script = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                              {"source": "delete WebAssembly.Suspending"})
        self.browser.get(f"file://{SITE}/{PAGE}")
        for figure in self.browser.find_elements("css selector", "figure.live"):
            self.assertIn("JavaScript Promise Integration", figure.text)
            self.assertFalse(figure.find_elements("css selector", "svg"))
        self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
