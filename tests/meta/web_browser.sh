#!/usr/bin/env bash
# The web edition in a browser: every page, and all that moves, in Chromium from file://: web_browser.sh [BIN]. Screenshots stay in
# build/web/screenshots. It takes the packages that `./book web` installs, chromium, chromium-driver and python3-selenium, and
# from BIN the program of chapter 02, with which the kernels in its page are compared.
# shellcheck source=tests/meta/meta.sh
. "$(dirname "$0")/meta.sh"
give_up() { echo "SKIPPED: the web edition in a browser ($1)" && exit 77; }
kernels=${1:-$root/build/cpu/bin}/kernels
sphinx=$root/build/web/packages
cmp -s "$root"/tools/web/requirements.txt "$sphinx"/requirements.txt || give_up "Sphinx is not here: ./book web installs it"
{ command -v chromium && command -v chromedriver; } >/dev/null || give_up "no chromium and chromium-driver here"
for python in /usr/bin/python3 python3 ''; do  # Debian's selenium serves /usr/bin/python3 only
    [[ $python ]] || give_up "no python3-selenium here"
    ! "$python" -c 'import selenium' 2>/dev/null || break
done
shots=$root/build/web/screenshots
rm -rf "$shots"
"$sphinx/bin/python" -m sphinx -q -W -j 2 -b html -c "$root/tools/web" -d "$scratch/doctrees" "$root" "$scratch/site" ||
    complain "the site is not made without a warning"
"$python" -W ignore "$root/tests/meta/web/browser_test.py" "$scratch/site" "$shots" ||
    complain "the pages are not as they should be; build/web/screenshots has pictures of them"
"$python" -W ignore "$root/tests/meta/web/live_test.py" "$scratch/site" "$shots" "$kernels" ||
    complain "the kernels in the page are not as they should be"
"$sphinx/bin/python" -m sphinx -q -W -j 2 -b singlehtml -c "$root/tools/web" -d "$scratch/doctrees" -D html_theme=basic \
    -D html_theme_options.nosidebar=1 -D html_css_files=print.css -D html_js_files= "$root" "$scratch/page" || complain "the single page is not made"
"$python" -W ignore "$root/tests/meta/web/paper_test.py" "$scratch/page/README.html" "$shots" || complain "the book cannot be read on paper"
finish
