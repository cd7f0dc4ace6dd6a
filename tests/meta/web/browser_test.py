"""The web edition in a real Chromium, from file://, on a desk and in a hand: browser_test.py SITE SCREENSHOTS

Every page is looked at for errors on the console, sideways scrolling, headings in order, words for pictures and contrast, in light and
in dark. Then somebody uses what moves, by keyboard where that is meant: predictions, excerpts, terms, recordings, search.
"""
import pathlib
import shutil
import sys
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

SITE, SHOTS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PAGES = sorted(path.relative_to(SITE) for path in SITE.rglob("*.html")
               if path.relative_to(SITE).parts[0] not in ("source", "_static", "index.html", "search.html"))

LOOK = """
const wrong = [];
const seen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.getClientRects().length;
if (document.documentElement.scrollWidth > innerWidth) {
  const wide = [...document.querySelectorAll("article *")].filter(element => element.getBoundingClientRect().right > innerWidth + 1);
  wrong.push(`scrolls sideways, to ${document.documentElement.scrollWidth}: ${wide.slice(0, 3).map(element => element.outerHTML.slice(0, 80))}`);
}
let level = 0;
for (const heading of document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) wrong.push(`"${heading.textContent}" is ${heading.tagName} below H${level}`);
  level = next;
}
for (const picture of document.querySelectorAll("img"))
  if (!picture.alt || !picture.naturalWidth && picture.complete && seen(picture)) wrong.push(`a picture without words or without a file: ${picture.src}`);
for (const field of document.querySelectorAll("article :is(button, textarea, select, input)"))
  if (!(field.ariaLabel || field.textContent.trim())) wrong.push(`nothing says what this is: ${field.outerHTML}`);
// WCAG's contrast, of each text against the first background behind it that is not transparent.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const colours = new Map();
const rgba = css => {
  if (!colours.has(css)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    colours.set(css, [...canvas.getImageData(0, 0, 1, 1).data]);
  }
  return colours.get(css);
};
const luminance = colour => colour.slice(0, 3).map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
  .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const poor = new Set();
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest("svg, script, style, option") || !seen(element)) continue;
  let behind = element;
  while (behind && rgba(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  const over = luminance(rgba(getComputedStyle(element).color)), under = luminance(behind ? rgba(getComputedStyle(behind).backgroundColor) : [255, 255, 255]);
  const contrast = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
  if (contrast < 4.5) poor.add(`contrast ${contrast.toFixed(2)}: ${element.tagName}.${element.className} "${walker.currentNode.data.trim().slice(0, 30)}"`);
}
return [...wrong, ...[...poor].slice(0, 4)];
"""


def new_browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Service(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=driver)
    browser.set_page_load_timeout(120)
    return browser


class Browser(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.browser = new_browser()
        SHOTS.mkdir(parents=True, exist_ok=True)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()

    def window(self, width, height=900):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def light(self, name):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, page, fresh=True):
        """Opens a page; nothing is left of what was answered before."""
        self.browser.get(f"file://{SITE}/{page}")
        if fresh:
            self.browser.execute_script("localStorage.clear()")
            self.browser.get("about:blank")
            self.browser.get(f"file://{SITE}/{page}")
        self.until("the page's kernels have run", "[...document.querySelectorAll('figure.live')].every(figure => figure.live)")

    def run_in_page(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def press(self, button):
        self.run_in_page("arguments[0].scrollIntoView({ block: 'center' }); arguments[0].focus()", button)
        button.send_keys(Keys.ENTER)

    def until(self, what, script, *arguments):
        """Waits until the script is true of the page."""
        end = time.monotonic() + 30
        while not self.run_in_page(f"return {script}", *arguments):
            self.assertLess(time.monotonic(), end, f"this has not come about: {what}")
            time.sleep(0.05)

    def console(self):
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, name, width):
        """Keeps all of the page, as far as a picture of it can be read."""
        height = self.run_in_page("return document.documentElement.scrollHeight")
        self.window(width, min(height, 12000))
        self.browser.save_screenshot(str(SHOTS / f"{name}.png"))
        self.window(width)

    def page_with(self, selector):
        text = {"figure.recording": 'class="recording"', "figure.excerpt": 'class="excerpt"', ".term": 'class="term"',
                "#book-predictions": 'id="book-predictions"', ".chapter-graph": 'class="chapter-graph"'}[selector]
        return next(page for page in PAGES if text in (SITE / page).read_text())


class EveryPage(Browser):

    def look(self, pages, width, scheme):
        self.window(width)
        self.light(scheme)
        for page in pages:
            with self.subTest(page=str(page), width=width, scheme=scheme):
                self.open(page, fresh=False)
                # As a reader sees it who has opened everything.
                self.run_in_page("window.bookPredictions?.openAll()")
                self.assertEqual(self.run_in_page(LOOK), [])
                self.assertEqual(self.console(), [])
                if scheme == "light" or width == 390:
                    self.picture(str(page).replace("/", "_").removesuffix(".html") + f"_{width}_{scheme}", width)

    def test_on_a_desk(self):
        self.look(PAGES, 1280, "light")

    def test_in_a_hand(self):
        self.look(PAGES, 390, "light")

    def test_in_the_dark(self):
        self.look(PAGES, 1280, "dark")

    def test_between_the_widths_at_which_the_layout_changes(self):
        page = self.page_with("figure.excerpt")
        for width in (320, 768, 1000, 1010, 1315, 1475, 1920):
            self.look([page], width, "light")

    def test_source_pages(self):
        sources = sorted(path.relative_to(SITE) for path in (SITE / "source").rglob("*.html"))
        for scheme in ("light", "dark"):
            self.look(sources[::60], 390, scheme)

    def test_first_paint_comes_within_a_second(self):
        largest = max(PAGES, key=lambda page: (SITE / page).stat().st_size)
        painted = []
        for _ in range(3):  # the best of three: the machine may have other work
            self.open(largest, fresh=False)
            self.until("the first paint", "performance.getEntriesByName('first-contentful-paint').length")
            painted.append(self.run_in_page("return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        print(f"first paint of {largest}: {min(painted):.0f} ms", file=sys.stderr)
        self.assertLess(min(painted), 1000)


class Reader(Browser):

    def setUp(self):
        self.window(1280)
        self.light("light")

    def tearDown(self):
        self.assertEqual(self.console(), [])

    def covered(self, question):
        return self.run_in_page("""
            const question = window.bookPredictions.questions[arguments[0]];
            return [...question.sections, question.answer].map(place => place.querySelector(":scope > .covered").hidden)""", question)

    def test_a_prediction_locks_and_opens_its_sections(self):
        page = self.page_with("#book-predictions")
        self.open(page)
        count = self.run_in_page("return window.bookPredictions.questions.length")
        self.assertGreater(count, 1)
        for question in range(count):
            self.assertNotIn(False, self.covered(question), f"question {question + 1} has an open answer")
        self.picture("predictions_locked", 1280)
        field = self.find("#predict-first textarea")
        button = self.find("#predict-first .prediction button")
        self.press(button)  # nothing is said yet
        self.assertNotIn(False, self.covered(0))
        field.send_keys("twice\nas many")
        field.send_keys(Keys.TAB, Keys.ENTER)  # by keyboard: from the answer to its button
        self.assertFalse(field.is_displayed(), "a locked answer can be changed")
        self.assertIn("twice as many", self.find("#predict-first .locked").text)
        for question in range(1, count):
            self.find(f"#predict-first li:nth-child({question + 1}) textarea").send_keys("no idea")
            self.press(self.find(f"#predict-first li:nth-child({question + 1}) .prediction button"))
        for question in range(count):
            self.assertNotIn(True, self.covered(question))
        compared = self.run_in_page("return document.querySelector('#your-predictions .compared').textContent")
        self.assertIn("twice as many", compared)
        self.picture("predictions_open", 1280)
        self.open(page, fresh=False)
        self.assertIn("twice as many", self.find("#predict-first .locked").text, "an answer is lost with its page")
        self.assertNotIn(True, self.covered(0))
        chapter = page.parts[1]
        kept = self.run_in_page("return predictionsFile()").splitlines()
        self.assertEqual(kept[0], f"## {chapter}")
        self.assertRegex(kept[1], r"^# \d{4}-\d\d-\d\d \d\d:\d\d$")
        self.assertEqual(kept[2], "1. twice as many")

    def test_a_section_opens_anyway(self):
        self.open(self.page_with("#book-predictions"))
        self.run_in_page("arguments[0].querySelector(':scope > .seal button').click()",
                         self.run_in_page("return window.bookPredictions.questions[0].answer"))
        self.assertNotIn(True, self.covered(0)[-1:])
        self.assertTrue(self.find("#predict-first textarea").is_displayed())

    def test_a_link_to_a_covered_place_leads_to_its_cover(self):
        self.open(self.page_with("#book-predictions"))
        self.run_in_page("location.hash = '#your-predictions'")
        self.until("the cover is in view", """(top => top >= -5 && top < innerHeight)(
            document.getElementById('your-predictions').getBoundingClientRect().top)""")

    def test_an_excerpt_unfolds_in_place(self):
        self.open(self.page_with("figure.excerpt"))
        self.run_in_page("window.bookPredictions?.openAll()")
        figure = self.find("figure.excerpt")
        button = figure.find_element("css selector", "figcaption button")
        self.run_in_page("arguments[0].scrollIntoView({ block: 'center' })", button)
        excerpt = figure.find_element("css selector", "pre").text.strip().splitlines()
        before = self.run_in_page("return firstLine(arguments[0])", figure)
        button.send_keys(Keys.ENTER)
        self.until("the file has come", "arguments[0].classList.contains('open')", figure)
        shown = [line.text.strip() for line in figure.find_elements("css selector", ".whole .shown")]
        self.assertEqual([line.strip() for line in excerpt], shown)
        total = len(figure.find_elements("css selector", ".whole pre > b"))
        self.assertGreater(total, len(shown))
        self.assertLess(abs(self.run_in_page("return firstLine(arguments[0])", figure) - before), 3, "the excerpt has moved")
        self.assertTrue(figure.find_elements("css selector", ".whole nav a"), "no file that is read first is one click away")
        self.browser.save_screenshot(str(SHOTS / "excerpt_open.png"))
        button.send_keys(Keys.ENTER)
        self.assertFalse(figure.find_element("css selector", ".whole").is_displayed())

    def test_a_name_leads_to_where_it_is_born(self):
        page = next(page for page in PAGES if page.parts[0] == "chapters" and 'class="excerpt"' in (SITE / page).read_text())
        self.open(page)
        link = self.run_in_page("return document.querySelector('figure.excerpt a.born').href")
        name = self.run_in_page("return document.querySelector('figure.excerpt a.born').textContent")
        self.browser.get(link)
        self.assertIn(name, self.run_in_page("return document.querySelector(':target').textContent"))

    def test_a_term_says_what_it_means(self):
        self.open(self.page_with(".term"))
        term = self.find(".term a")
        says = self.find(".term [role=tooltip]")
        self.assertFalse(says.is_displayed())
        self.run_in_page("arguments[0].focus({ focusVisible: true })", term)
        self.assertTrue(says.is_displayed())
        self.browser.save_screenshot(str(SHOTS / "term.png"))
        term.send_keys(Keys.ESCAPE)
        self.assertFalse(says.is_displayed())
        self.window(390)
        self.run_in_page("arguments[0].blur(); arguments[0].focus()", term)
        self.assertTrue(says.is_displayed())
        self.assertEqual(self.run_in_page("return document.documentElement.scrollWidth"), 390)

    def test_every_recording_steps_by_keyboard(self):
        played = set()
        for page in PAGES:
            if 'class="recording"' not in (SITE / page).read_text():
                continue
            self.open(page, fresh=False)
            self.run_in_page("window.bookPredictions?.openAll()")
            for figure in self.browser.find_elements("css selector", "figure.recording"):
                name = figure.get_attribute("data-name")
                played.add(name)
                with self.subTest(recording=name):
                    self.keys(figure, name)
        self.assertGreaterEqual(len(played), 5)
        print(f"recordings: {', '.join(sorted(played))}", file=sys.stderr)

    def keys(self, figure, name):
        says = lambda: figure.find_element("css selector", ".says").text
        drawn = lambda: self.run_in_page("return arguments[0].querySelector('svg').innerHTML", figure)
        step = lambda: self.run_in_page("return arguments[0].recording.step", figure)
        first, empty = says(), drawn()
        figure.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(step(), 1)
        self.assertNotEqual(says(), first)
        self.assertNotEqual(drawn(), empty)
        figure.send_keys(Keys.ARROW_LEFT)
        self.assertEqual((step(), says(), drawn()), (0, first, empty))
        figure.send_keys(Keys.END)
        self.assertEqual(step(), self.run_in_page("return arguments[0].recording.last", figure))
        figure.send_keys(Keys.HOME, Keys.SPACE)
        self.until("it plays", "arguments[0].recording.step > 0", figure)
        figure.send_keys(Keys.SPACE)
        self.assertFalse(self.run_in_page("return Boolean(arguments[0].recording.timer)", figure), "it does not stop")
        count = self.run_in_page("return arguments[0].recording.played.length", figure)
        for choice in range(count):
            self.run_in_page("arguments[0].recording.choose(arguments[1])", figure, choice)
            last = self.run_in_page("return arguments[0].recording.last", figure)
            for at in sorted({0, 1, last // 2, last}):
                self.run_in_page("arguments[0].recording.go(arguments[1])", figure, at)
                self.assertNotRegex(says(), "NaN|undefined|Infinity|^$")
                self.assertNotRegex(drawn(), "NaN|undefined|Infinity")
            if choice not in (0, 1, count // 2, count - 1):
                continue  # these are enough to look at
            self.run_in_page("arguments[0].recording.go(arguments[1]); arguments[0].scrollIntoView({ block: 'center' })", figure, last // 2)
            for width in (1280, 390):
                self.window(width)
                self.run_in_page("arguments[0].scrollIntoView()", figure)
                self.assertEqual(self.run_in_page("""
                    const end = arguments[0].getBoundingClientRect().right;
                    return [...arguments[0].querySelectorAll("*")].filter(part => part.getBoundingClientRect().right > end + 1).map(part => part.outerHTML.slice(0, 80))""",
                                                  figure), [], "this stands out of the figure")
                self.browser.save_screenshot(str(SHOTS / f"recording_{name}_{choice}_{width}.png"))
            self.window(1280)

    def figure_of(self, name):
        self.open(next(page for page in PAGES if f'data-name="{name}"' in (SITE / page).read_text()))
        self.run_in_page("window.bookPredictions?.openAll()")
        return self.find(f'figure[data-name="{name}"]')

    def test_what_a_recording_is_of_is_chosen_by_keyboard(self):
        figure = self.figure_of("bench_overlap")
        drawn = lambda: self.run_in_page("return arguments[0].querySelector('svg').innerHTML", figure)
        says = lambda: figure.find_element("css selector", ".says").text
        link = figure.find_element("css selector", '[aria-label="link in MB/s"]')
        self.assertEqual(self.run_in_page("return arguments[0].ariaValueText", link), "100")
        figure.send_keys(Keys.END)
        slow = drawn(), says()
        link.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(self.run_in_page("return arguments[0].ariaValueText", link), "200")
        figure.send_keys(Keys.END)
        self.assertFalse((drawn(), says()) == slow, "another link changes nothing")
        # What was not recorded is not shown.
        self.run_in_page("arguments[0].recording.played = arguments[0].recording.played.filter(({ of }) => of['link in MB/s'] !== 400)", figure)
        link.send_keys(Keys.ARROW_RIGHT)
        self.assertEqual((len(drawn()), says()), (0, "No run of this kind has been recorded."))
        link.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("forward", says())
        self.assertNotEqual(drawn(), "")

    def test_a_readers_own_run_takes_the_place_of_the_books(self):
        self.figure_of("sharded_bill")
        kinds = "parameters,gathered,gradients,buckets,moments,activations,communicator"
        shown = self.run_in_page("""
            const figure = document.createElement("figure"), [own, book] = arguments;
            Object.assign(figure.dataset, { name: "own", scene: "memory" });
            figure.append(Object.assign(document.createElement("img"), { alt: "a picture" }));
            for (const [made, text] of [["2026-11-26", own], ["", book]]) {
              const run = Object.assign(document.createElement("script"), { type: "application/json", textContent: JSON.stringify(text) });
              run.dataset.made = made;
              figure.append(run);
            }
            document.querySelector("article").append(figure);
            const recording = new Recording(figure), words = () => [".from", ".says"].map(name => figure.querySelector(name).textContent);
            return recording.played.map((_, index) => (recording.choose(index), words()));
        """, f"stage,ranks,{kinds}\n0,4,{'1048576,' * 6}1048576\n", f"stage,ranks,{kinds}\n0,2,0,0,0,0,0,0,2097152\n0,4,0,0,0,0,0,0,9\n")
        self.assertEqual(len(shown), 2, "a run of the book's stays beside the reader's own of the same kind")
        self.assertIn("Your own run of 2026-11-26.", shown[0][0])
        self.assertIn("each of 4 ranks keeps 7 MiB", shown[0][1])
        self.assertIn("The book's own run.", shown[1][0])
        self.assertIn("each of 2 ranks keeps 2 MiB", shown[1][1])

    def test_search_finds_a_chapter_and_no_source(self):
        self.browser.get(f"file://{SITE}/search.html?q=bandwidth")
        self.until("results", "document.querySelectorAll('#search-results li').length > 2")
        links = self.run_in_page("return [...document.querySelectorAll('#search-results a')].map(link => link.getAttribute('href'))")
        self.assertFalse([link for link in links if link.startswith("source/")])

    def test_dark_and_light_are_a_click_away(self):
        self.open(PAGES[0])
        self.run_in_page("document.querySelector('.theme-toggle-header, .theme-toggle').click()")
        theme = self.run_in_page("return document.body.dataset.theme")
        self.browser.get(f"file://{SITE}/{next(path.relative_to(SITE) for path in (SITE / 'source').rglob('*.hpp.html'))}")
        self.assertEqual(self.run_in_page("return document.body.dataset.theme"), theme)

    def test_previous_and_next_lead_through_all_chapters(self):
        chapters = [page for page in PAGES if page.parts[0] == "chapters" and page.parts[1][:2].isdigit() and len(page.parts) == 3]
        page, found = pathlib.Path("README.html"), []
        for _ in range(3 * len(PAGES)):
            found.append(page)
            self.browser.get(f"file://{SITE}/{page}")
            link = self.run_in_page("return document.querySelector('a.next-page')?.href")
            if not link:
                break
            page = pathlib.Path(link.removeprefix(f"file://{SITE}/").split("#")[0])
        self.assertEqual([page for page in found if page in chapters], chapters)
        self.assertEqual(sorted(set(found)), PAGES)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
