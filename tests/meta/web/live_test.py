"""The kernels that run in chapter 02's page, in a real Chromium: live_test.py SITE SCREENSHOTS KERNELS

KERNELS is the program that `./book run 02` starts: in the same order of threads, both must come to the same numbers.
"""
import os
import re
import subprocess
import sys
import unittest

from browser_test import SHOTS, SITE, Browser
from selenium.webdriver.common.keys import Keys

PAGE = "chapters/02_kernels/README.html"
ORDERS = ["forward", "reversed"] + [f"random:{seed}" for seed in range(6)]


def printed_tables(order):
    """Returns the tables that the chapter's run prints, by their titles: their rows, and their note."""
    said = subprocess.run([sys.argv[3], "--quick"], env=os.environ | {"CUDA_ON_CPU": f"order={order}"},
                          capture_output=True, text=True, check=True).stdout
    tables = re.findall(r"^(.+)\n─+\n.+\n─+\n((?:.+\n)+?)─+\n(.*)", said, re.M)
    return {title: ([row.split() for row in rows.splitlines()], note) for title, rows, note in tables}


class Live(Browser):

    def setUp(self):
        self.window(1280)
        self.light("light")
        self.open(PAGE)
        self.run_in_page("window.bookPredictions?.openAll()")

    def tearDown(self):
        self.assertEqual(self.console(), [])

    def figure(self, program):
        return self.find(f"figure.live[data-program={program}]")

    def runs(self, program, without=(), **values):
        """Chooses and runs; returns the result, and what is said in the end."""
        script = """
            const [figure, values, without, done] = arguments, live = figure.live;
            live.without = new Set(without);
            live.choose(values).then(() => done([live.run.result, live.sentence(live.last), [...live.run.lines]]));"""
        return self.browser.execute_async_script(script, self.figure(program), values, list(without))

    def barriers(self):
        return sorted(self.runs("tree", kernel=1, order="forward")[2])

    def take(self, program, *numbers):
        """Gives these threads their turns, by hand."""
        for number in numbers:
            result = self.browser.execute_async_script("""
                const [figure, number, done] = arguments, live = figure.live;
                live.take(number).then(() => done([live.run.result, live.sentence(live.last)]));""", self.figure(program), number)
        return result

    def test_the_tree_without_barriers_is_that_of_the_run(self):
        before_loop, in_loop = self.barriers()
        sums = set()
        for order in ORDERS:
            rows, note = printed_tables(order)["The same kernel without these barriers"]
            name, _, seed = order.partition(":")
            (total, *cells), says, _ = self.runs("tree", without=[in_loop], kernel=1, threads=8, eachAccess=False, order=name, seed=int(seed or 0))
            sums.add(total)
            shown = [[value for value, has_added in zip(cells[i:i + 16:2], cells[i + 1:i + 16:2]) if has_added or i == 0]
                     for i in range(0, 64, 16)]
            with self.subTest(order=order):
                self.assertEqual(shown, [[int(word) for word in row if word.isdigit()][i > 0:] for i, row in enumerate(rows)])
                self.assertIn(f"The sum is {total}; right is 36.", note)
                self.assertIn(note, says)
        self.assertGreater(len(sums), 2, "these orders do not differ")

    def test_the_race_is_that_of_the_run(self):
        for order in ORDERS:
            rows, note = printed_tables(order)["Two threads, one sum, without an atomic"]
            name, _, seed = order.partition(":")
            (_, *log), says, _ = self.runs("race", kernel="race", atomic=0, eachAccess=False, order=name, seed=int(seed or 0))
            shown = [["writes" if log[i + 1] else "reads", str(log[i + 2])] for i in range(0, len(log), 3)]
            with self.subTest(order=order):
                self.assertEqual(shown, [row[1:] for row in rows])
                self.assertIn(note, says)

    def test_who_computes_what_is_as_in_the_run(self):
        tables = printed_tables("forward")
        for kernel, blocks, threads in (("by_index", 3, 4), ("by_grid_range", 2, 2)):
            title = f"{kernel.replace('_', ' ').capitalize()}: element i is computed by ... ({blocks} blocks of {threads} threads)"
            (block_row, thread_row), _ = tables[title.replace("grid range", "grid_range")]
            places = self.runs("vector_add", kernel=kernel, n=10, blocks=blocks, threads=threads, order="forward")[0]
            self.assertEqual([str(place) for place in places[0::2]], block_row[1:])
            self.assertEqual([str(place) for place in places[1::2]], thread_row[1:])
        says = self.runs("vector_add", kernel="by_index", n=10, blocks=2, threads=4)[1]
        self.assertIn("No thread has computed elements 8 and 9.", says)
        sums = self.runs("vector_add", kernel="add", n=16, threads=5, order="reversed")[0]
        self.assertEqual(sums, [11 * i for i in range(1, 17)])

    def test_a_barrier_that_is_taken_away(self):
        before_loop, in_loop = self.barriers()
        for kernel, threads in ((1, 32), (0, 16)):
            right = f"The sum is {threads * (threads + 1) // 2};"
            for each in (True, False):
                for order in ("forward", "reversed", "random"):
                    says = self.runs("tree", kernel=kernel, threads=threads, eachAccess=each, order=order)[1]
                    self.assertIn(right, says)
                    self.assertIn("Nothing races.", says)
        # As the chapter says: without the barrier before the loop it goes wrong forward, and is right reversed, but not by right.
        self.assertNotIn("The sum is 36", self.runs("tree", without=[before_loop], kernel=1, threads=8, eachAccess=False, order="forward")[1])
        says = self.runs("tree", without=[before_loop], kernel=1, threads=8, eachAccess=False, order="reversed")[1]
        self.assertIn("The sum is 36; right is 36.", says)
        self.assertRegex(says, r"accesses race: in another order")
        # What the page leaves out by a box is what the book's own kernel without barriers leaves out.
        ours = self.runs("tree", without=[in_loop], kernel=1, threads=16, order="random", seed=4)[0]
        own = self.run_in_page("livePrograms.tree.fields[0].options.push(['', 2])") or self.runs("tree", kernel=2, threads=16, order="random", seed=4)[0]
        self.assertEqual(ours, own)

    def test_additions_are_lost_but_for_atomics(self):
        for kernel, right in (("race", 3), ("ones", 6)):
            sums = {atomic: {self.runs("race", kernel=kernel, atomic=atomic, additions=3, eachAccess=True, order=order, seed=seed)[0][0]
                             for order, seed in (("forward", 0), ("reversed", 0), ("random", 1), ("random", 2))} for atomic in (0, 1)}
            self.assertEqual(sums[1], {right})
            self.assertTrue(sums[0] - {right}, "nothing is lost")

    def test_by_hand_three_additions_each_end_with_two(self):
        self.runs("race", kernel="ones", atomic=0, additions=3, eachAccess=True, order="hand")
        self.take("race", 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0)
        result, says = self.take("race", 1)
        self.assertEqual(result, [2])
        self.assertIn("The sum is 2; right is 6.", says)

    def test_by_hand_with_the_keyboard(self):
        self.runs("tree", kernel=1, threads=4, eachAccess=False, order="hand")
        figure = self.figure("tree")
        button = lambda number: figure.find_elements("css selector", ".hand button")[number]
        for turn, thread in enumerate((2, 0, 3, 1), 1):
            self.run_in_page("arguments[0].focus()", button(thread))
            button(thread).send_keys(Keys.ENTER)
            self.until("a turn", "arguments[0].live.last === arguments[1]", figure, turn)
            self.assertIs(self.run_in_page("return document.activeElement === arguments[0]", button(thread)), True, "the button loses the focus")
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

    def test_a_device_that_is_late_and_one_that_is_not(self):
        self.assertEqual(self.runs("streams", order="lazy", n=4)[0], [0, 0, 2, 0, 2, 4])
        self.assertEqual(self.runs("streams", order="eager", n=4)[0], [2, 4, 2, 4, 2, 4])
        self.runs("streams", order="hand", n=1)
        # The host enqueues all; the device does the first two pieces, and the host looks.
        self.take("streams", 0, 0, 0, 0, 1, 1)
        self.assertEqual(self.take("streams", 0)[0], [2, 0, 2, 0, 2, 4])

    def test_every_figure_steps_by_keyboard(self):
        figures = self.browser.find_elements("css selector", "figure.live")
        self.assertEqual(len(figures), 4)
        for figure in figures:
            name = figure.get_attribute("data-program")
            says = lambda: figure.find_element("css selector", ".says").text
            last = self.run_in_page("return arguments[0].live.last", figure)
            self.run_in_page("arguments[0].focus()", figure)
            first = says()
            figure.send_keys(Keys.ARROW_RIGHT)
            self.assertNotEqual(says(), first)
            figure.send_keys(Keys.ARROW_LEFT)
            self.assertEqual(says(), first)
            for step in range(last):
                figure.send_keys(Keys.ARROW_RIGHT)
                self.assertEqual(self.run_in_page("return arguments[0].live.step", figure), step + 1)
                self.assertNotRegex(says() + self.run_in_page("return arguments[0].querySelector('svg').innerHTML", figure), "NaN|undefined|Infinity|null")
            for width in (1280, 390):
                self.window(width)
                self.assertEqual(self.run_in_page("return document.documentElement.scrollWidth"), width)
                self.run_in_page("arguments[0].scrollIntoView()", figure)
                self.browser.save_screenshot(str(SHOTS / f"live_{name}_{width}.png"))
            self.window(1280)

    def test_a_choice_by_keyboard_keeps_the_focus(self):
        figure = self.figure("tree")
        order = figure.find_element("css selector", "select[name=order]")
        self.run_in_page("arguments[0].focus()", order)
        order.send_keys("r")
        self.until("another order", "arguments[0].live.values.order === 'reversed'", figure)
        box = figure.find_elements("css selector", "input[type=checkbox]")[1]
        box.send_keys(Keys.SPACE)
        self.until("a barrier less", "arguments[0].live.run.settings.without.length === 1", figure)
        self.assertTrue(self.run_in_page("return document.activeElement === arguments[0]", box))

    def test_a_browser_that_cannot_suspend_says_so(self):
        script = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "delete WebAssembly.Suspending"})
        self.browser.get(f"file://{SITE}/{PAGE}")
        self.run_in_page("window.bookPredictions?.openAll()")
        for figure in self.browser.find_elements("css selector", "figure.live"):
            self.assertIn("JavaScript Promise Integration", figure.text)
            self.assertFalse(figure.find_elements("css selector", "svg"))
        self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
