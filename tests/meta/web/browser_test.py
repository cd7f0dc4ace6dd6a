"""The web edition in a real Chromium, from file://: browser_test.py SITE SCREENSHOTS

Every page is looked at (look.js) in several widths, in light and in dark. Then what moves is used,
by keyboard where that is meant: predictions, terms, recordings, search.
"""
import csv
import io
import pathlib
import re
import shutil
import sys
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

SITE, SHOTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = sorted(path.relative_to(SITE) for path in SITE.rglob("*.html")
               if not re.match("source/|_static/|index|search", str(path.relative_to(SITE))))

# The sections without a word that can be read.
SILENT = """
    const text = part => part.innerText.trim();
    return [...document.querySelectorAll("article section")].filter(section =>
        text(section) === text(section.querySelector("h1, h2, h3, h4, h5, h6")))
    .map(section => section.id)"""
LOOK = pathlib.Path(__file__).with_name("look.js").read_text()


class Browser(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Service(shutil.which("chromedriver"))
        cls.browser = webdriver.Chrome(options=options, service=driver)
        cls.browser.set_page_load_timeout(120)
        SHOTS.mkdir(parents=True, exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()

    def window(self, width, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def light(self, name):
        scheme = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)

    def setUp(self):
        self.window(1280)
        self.light("light")

    def tearDown(self):
        self.assertEqual(self.console(), [])

    def open(self, page):
        self.browser.get(f"file://{SITE}/{page}")
        self.until("the page's kernels have run",
                   "[...document.querySelectorAll('figure.live')].every(figure => figure.live)")

    def run_in_page(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def ask(self, expression, *arguments):
        return self.run_in_page(f"return {expression}", *arguments)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def says(self, figure):
        return figure.find_element("css selector", ".says").text

    def drawn(self, figure):
        return self.ask("arguments[0].querySelector('svg').innerHTML", figure)

    def press(self, button):
        self.run_in_page("arguments[0].scrollIntoView({ block: 'center' })", button)
        button.send_keys(Keys.ENTER)

    def until(self, what, script, *arguments):
        """Waits until the script is true of the page."""
        end = time.monotonic() + 30
        while not self.ask(script, *arguments):
            self.assertLess(time.monotonic(), end, f"this has not come about: {what}")
            time.sleep(0.05)

    def console(self):
        return [entry["message"] for entry in self.browser.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, name, width):
        """Keeps all of the page, as far as a picture of it can be read."""
        height = self.ask("document.documentElement.scrollHeight")
        self.window(width, min(height, 12000))
        self.browser.save_screenshot(str(SHOTS / f"{name}.png"))
        self.window(width)

    def page_with(self, text, folder=""):
        return next(page for page in PAGES
                    if str(page).startswith(folder) and text in (SITE / page).read_text())


class EveryPage(Browser):

    def look(self, pages, width, scheme):
        self.window(width)
        self.light(scheme)
        for page in pages:
            with self.subTest(page=str(page), width=width, scheme=scheme):
                self.open(page)
                self.assertEqual(self.run_in_page(SILENT), [], "sections without a word on arrival")
                self.run_in_page("""
                    const seals = document.querySelectorAll(".seal:not([hidden]) button");
                    seals.forEach(seal => seal.click())""")
                self.assertEqual(self.run_in_page(LOOK), [])
                self.assertEqual(self.console(), [])
                if scheme == "light" or width == 390:
                    name = str(page).replace("/", "_").removesuffix(".html")
                    self.picture(f"{name}_{width}_{scheme}", width)

    def test_on_a_desk(self):
        self.look(PAGES, 1280, "light")

    def test_in_a_hand(self):
        self.look(PAGES, 390, "light")

    def test_in_the_dark(self):
        self.look(PAGES, 1280, "dark")

    def test_between_the_widths_at_which_the_layout_changes(self):
        page = self.page_with('class="excerpt"')
        for width in (320, 768, 1000, 1010, 1315, 1475, 1920):
            self.look([page], width, "light")

    def test_source_pages(self):
        sources = sorted(path.relative_to(SITE) for path in (SITE / "source").rglob("*.html"))
        for scheme in ("light", "dark"):
            self.look(sources[::60], 390, scheme)

    def test_hardly_an_excerpt_is_cut(self):
        excerpts, cut = 0, []
        for page in PAGES:
            if 'class="excerpt"' in (SITE / page).read_text():
                self.open(page)
                wide = self.run_in_page("""
                    const wide = block => block.scrollWidth > block.clientWidth + 1;
                    return [...document.querySelectorAll("figure.excerpt pre")].map(wide)""")
                excerpts += len(wide)
                cut += [str(page)] * sum(wide)
        self.assertGreater(excerpts, 50)
        self.assertLessEqual(len(cut), excerpts / 100, cut)


class Reader(Browser):

    def covered(self, question):
        return self.run_in_page("""
            const { answer } = window.bookPredictions.questions[arguments[0]];
            return answer.querySelector(":scope > .covered").hidden""", question)

    def test_a_prediction_locks_and_opens_its_answer(self):
        page = self.page_with('id="predict-first"', "chapters/")
        self.open(page)
        self.run_in_page("localStorage.clear()")
        self.open(page)
        count = self.ask("window.bookPredictions.questions.length")
        self.assertEqual([self.covered(question) for question in range(count)], [True] * count)
        field = self.find("#predict-first textarea")
        self.press(self.find("#predict-first .prediction button"))  # nothing is said yet
        self.assertTrue(self.covered(0))
        field.send_keys("twice\nas many")
        field.send_keys(Keys.TAB, Keys.ENTER)  # by keyboard: from the answer to its button
        self.assertFalse(field.is_displayed(), "a locked answer can be changed")
        self.picture("predictions", 1280)
        self.open(page)
        self.assertIn("twice as many", self.find("#predict-first .locked").text)
        self.assertIn("twice as many", self.find("#your-predictions .compared").text)
        self.assertEqual([self.covered(question) for question in range(count)],
                         [False] + [True] * (count - 1))
        self.press(self.find("#your-predictions li:nth-child(2) .seal button"))  # anyway
        self.assertFalse(self.covered(1))
        kept = self.ask("bookPredictions.file()").splitlines()
        self.assertEqual(kept[0], f"## {page.parts[1]}")
        self.assertRegex(kept[1], r"^# \d{4}-\d\d-\d\d \d\d:\d\d$")
        self.assertEqual(kept[2], "1. twice as many")

    def test_a_term_says_what_it_means(self):
        self.open(self.page_with('class="term'))
        term, says = self.find("a.term"), self.find("#meaning")
        self.assertFalse(says.is_displayed())
        self.run_in_page("arguments[0].focus({ focusVisible: true })", term)
        self.assertTrue(says.is_displayed())
        self.browser.save_screenshot(str(SHOTS / "term.png"))
        term.send_keys(Keys.ESCAPE)
        self.assertFalse(says.is_displayed())
        self.window(390)
        self.run_in_page("arguments[0].blur(); arguments[0].focus()", term)
        self.assertTrue(says.is_displayed())
        self.assertEqual(self.ask("document.documentElement.scrollWidth"), 390)

    def test_the_first_tap_on_a_term_says_what_it_means(self):
        self.open(self.page_with('class="term'))
        stays = """
            const [term] = arguments, finger = { pointerType: "touch", cancelable: true };
            term.dispatchEvent(new PointerEvent("pointerdown", finger));
            term.dispatchEvent(new MouseEvent("mouseenter"));  // as a browser adds to a tap
            const tap = new PointerEvent("click", finger);
            term.addEventListener("click", event => {
              tap.stays = event.defaultPrevented;
              event.preventDefault();
            }, { once: true });
            term.dispatchEvent(tap);
            return [tap.stays, !document.querySelector("#meaning").hidden]"""
        term = self.find("a.term")
        self.assertEqual(self.run_in_page(stays, term), [True, True])
        self.assertEqual(self.run_in_page(stays, term), [False, True])

    def figure_of(self, name):
        self.open(self.page_with(f'data-name="{name}"', "chapters/"))
        figure = self.find(f'figure[data-name="{name}"]')
        self.run_in_page("openRecording(arguments[0])", figure)
        return figure

    def test_a_recording_steps_by_keyboard(self):
        figure = self.figure_of("ring")
        step, first = "arguments[0].recording.step", (self.says(figure), self.drawn(figure))
        for keys, there in ((Keys.HOME, 0), (Keys.ARROW_RIGHT, 1), (Keys.ARROW_LEFT, 0)):
            figure.send_keys(keys)
            self.assertEqual(self.ask(step, figure), there)
        self.assertNotEqual((self.says(figure), self.drawn(figure)), first)
        figure.send_keys(Keys.END)
        self.assertEqual((self.says(figure), self.drawn(figure)), first)
        figure.send_keys(Keys.HOME, Keys.SPACE)
        self.until("it plays", f"{step} > 0", figure)
        figure.send_keys(Keys.SPACE)
        self.assertFalse(self.ask("arguments[0].recording.timer", figure), "it does not stop")
        figure.find_element("css selector", '[aria-label="run"]').send_keys(Keys.ARROW_DOWN)
        self.assertNotEqual((self.says(figure), self.drawn(figure)), first)

    def test_every_recording_draws_all_that_it_has(self):
        for name in ("ways", "ring", "paths", "overlap", "hang"):
            figure = self.figure_of(name)
            count = self.ask("arguments[0].recording.played.length", figure)
            for choice in range(count):
                self.run_in_page("arguments[0].recording.choose(arguments[1])", figure, choice)
                last = self.ask("arguments[0].recording.last", figure)
                for at in sorted({0, 1, last // 2, last}):
                    self.run_in_page("arguments[0].recording.go(arguments[1])", figure, at)
                    shown = self.says(figure) + self.drawn(figure)
                    self.assertNotRegex(shown, "NaN|undefined|Infinity|^<")
            for width in (1280, 390):
                self.window(width)
                self.run_in_page("arguments[0].scrollIntoView()", figure)
                self.assertEqual(self.run_in_page("""
                    const end = part => part.getBoundingClientRect().right, [figure] = arguments;
                    const wide = part => end(part) > end(figure) + 1;
                    return [...figure.querySelectorAll("*")].filter(wide)
                      .map(part => part.outerHTML.slice(0, 80))""", figure), [], "it is too wide")
                self.browser.save_screenshot(str(SHOTS / f"recording_{name}_{width}.png"))
            self.window(1280)

    def test_all_timelines_of_a_figure_have_one_scale(self):
        for name in ("ways", "overlap"):
            bars = self.run_in_page("""
                const number = /from ([\\d.]+) to ([\\d.]+)/;
                return [...arguments[0].querySelectorAll("rect[opacity]")].map(bar =>
                  [Number(bar.getAttribute("width")), ...bar.textContent.match(number).slice(1)])
                """, self.figure_of(name))
            scales = [width / (float(end) - float(begin)) for width, begin, end in bars
                      if width > 30]
            self.assertGreater(len(scales), 3)
            self.assertLess(max(scales) / min(scales), 1.1, f"{name}: {scales}")

    def test_the_sentence_at_the_end_is_the_number_in_the_file(self):
        for name, by, end in (("overlap", "overlap", "end_ms"),
                              ("ways", "algorithm", "end_seconds")):
            figure = self.figure_of(name)
            text = self.ask("JSON.parse(arguments[0].querySelector('script').textContent)", figure)
            ends = {}
            for row in csv.DictReader(io.StringIO(text)):
                ends[row[by]] = max(ends.get(row[by], 0), float(row[end]))
            numbers = re.findall(r"done after ([\d.]+)", self.says(figure))
            said = [float(number) for number in numbers]
            self.assertGreater(len(ends), 1)
            for one, other in zip(sorted(said), sorted(ends.values()), strict=True):
                self.assertLess(abs(one / other - 1), 0.006, f"{name}: {said}, {ends}")

    def test_a_state_has_an_address(self):
        page = self.page_with('data-name="ring"')
        self.open(f"{page}#ring:algorithm=ring,step=2")
        figure = self.find('figure[data-name="ring"]')
        self.assertEqual(self.ask("arguments[0].recording.step", figure), 2)
        figure.send_keys(Keys.ARROW_RIGHT)
        self.assertRegex(self.ask("location.hash"), r"^#ring:algorithm=ring,.*step=3$")

    def test_the_first_screen_plays_when_it_is_seen(self):
        self.open("README.html")
        self.until("it plays", "document.querySelector('[data-plays]').recording?.step > 3")

    def test_search_finds_with_a_line_of_text(self):
        for words, page in (("bandwidth", "chapters/"), ("NCCL timeout", "chapters/symptoms.html"),
                            ("all-reduce", "chapters/glossary.html"), ("ZeRO", "chapters/")):
            self.browser.get(f"file://{SITE}/search.html?q={words}")
            first = self.find("#search-results li")
            link = first.find_element("css selector", "a")
            self.assertIn(f"{SITE}/{page}", link.get_attribute("href"), words)
            self.assertIn(words.split()[0].lower(), first.text.lower().replace("_", "-"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
