"""The single page from which the book is printed, in a Chromium: paper_test.py PAGE SCREENSHOTS

A page wider than the paper has all of the book printed smaller, and nothing unfolds on paper.
"""
import sys
import unittest

from browser_test import Browser
from browser_test import SITE as PAGE

PAPER = 673  # of A4, between its margins, in CSS's pixels


class Paper(Browser):

    def setUp(self):
        self.window(PAPER)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.browser.get(f"file://{PAGE}")

    def test_it_is_as_wide_as_the_paper(self):
        wide = self.run_in_page("""
            const wide = element => element.getBoundingClientRect().right > innerWidth + 1;
            return [...document.querySelectorAll("body *")]
              .filter(element => wide(element) && ![...element.children].some(wide))
              .map(element => element.outerHTML.slice(0, 120)).slice(0, 5)""")
        self.assertEqual(wide, [])
        self.assertEqual(self.run_in_page("return document.documentElement.scrollWidth"), PAPER)

    def test_what_is_folded_is_open(self):
        folded = self.run_in_page("""
            const seen = element => element.checkVisibility({ contentVisibilityAuto: true });
            return [...document.querySelectorAll("details > :not(summary)")].filter(element =>
              element.textContent.trim() && !seen(element)).length""")
        self.assertEqual(folded, 0)
        self.assertGreater(self.ask("document.querySelectorAll('details').length"), 50)

    def test_it_begins_with_its_contents(self):
        leads = self.run_in_page("""
            return [...document.querySelectorAll(".contents a")].map(link =>
              Boolean(document.getElementById(decodeURIComponent(link.hash.slice(1)))))""")
        self.assertGreater(len(leads), 24)
        self.assertTrue(all(leads))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
