"""The kernels that run in chapter 02's page, in a Chromium: live_test.py SITE SCREENSHOTS KERNELS

KERNELS is the program that `./book run 02` starts: in the same order of threads, both must come to
the same numbers.
"""
import os
import re
import subprocess
import sys
import unittest

from browser_test import ROOT, SHOTS, Browser
from selenium.webdriver.common.keys import Keys

PAGE = "chapters/02_kernels/README.html"
ORDERS = ["forward", "reversed"] + [f"random:{seed}" for seed in range(6)]


def printed_notes(order):
    """Returns what stands below the tables that the chapter's run prints, by their titles."""
    ordered = os.environ | {"CUDA_ON_CPU": f"order={order}"}
    said = subprocess.check_output([sys.argv[3], "--quick"], env=ordered, text=True)
    return dict(re.findall(r"^(.+)\n─+\n.+\n─+\n(?:.+\n)+?─+\n(.*)", said, re.M))


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
              done([live.run.sum, live.sentence(live.last), [...live.run.lines]]));"""
        figure = self.figure(program)
        return self.browser.execute_async_script(script, figure, values, list(without))

    def barriers(self):
        return sorted(self.runs("tree", kernel=1)[2])

    def take(self, program, *numbers):
        """Gives these threads their turns, by hand."""
        for number in numbers:
            result = self.browser.execute_async_script("""
                const [{ live }, number, done] = arguments;
                live.take(number).then(() => done([live.run.sum, live.sentence(live.last)]));""",
                                                       self.figure(program), number)
        return result

    def test_sums_are_those_of_the_run(self):
        without_barriers = [max(self.barriers())]
        for order in ("forward", "reversed"):
            notes = printed_notes(order)
            with self.subTest(order=order):
                self.assertIn(notes["The same kernel without these barriers"],
                              self.runs("tree", order, without_barriers, kernel=1, threads=8,
                                        eachAccess=False)[1])
                self.assertIn(notes["Two threads, one sum, without an atomic"],
                              self.runs("race", order, kernel="race", atomic=0,
                                        eachAccess=False)[1])

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
                                     eachAccess=True)[0] for order in ORDERS[:4]}
                          for atomic in (0, 1))
            self.assertEqual(kept, {right})
            self.assertTrue(lost - {right}, "nothing is lost")

    def test_a_task_that_is_solved_is_said_to_be(self):
        self.runs("race", "by hand", kernel="race", atomic=0, eachAccess=False)
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
        self.runs("tree", "by hand", kernel=1, threads=4, eachAccess=False)
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
        for name in ("race", "tree"):
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

    def test_where_nothing_can_run_a_recorded_run_is_shown(self):
        self.runs("tree", without=[max(self.barriers())])  # as the chapter's table above it
        text = self.ask("""JSON.stringify(Object.fromEntries(
            [...document.querySelectorAll("figure.live")].map(figure =>
              [figure.dataset.program, figure.live.run])))""")
        (SHOTS / "runs.json").write_text(f"{text}\n")
        self.assertTrue(f"{text}\n" == (ROOT / "tools/web/live/runs.json").read_text(),
                        "take the new ones: cp build/web/screenshots/runs.json tools/web/live")
        script = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                                              {"source": "delete WebAssembly.Suspending"})
        self.open(PAGE)
        self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        figure = self.figure("tree")
        self.assertIn("JavaScript Promise Integration", figure.text)
        self.assertIn("The sum is 11; right is 36.", self.says(figure))
        self.assertFalse(figure.find_element("css selector", "select").is_enabled())
        figure.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
        self.assertIn("Thread 0 reads values[0] (1), writes 1 to partial[0]", self.says(figure))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
