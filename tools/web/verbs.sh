# Sourced by ./book: the web edition, which Sphinx makes of the READMEs. What it is made of stands in tools/web/.
# shellcheck shell=bash disable=SC2154,SC2034  # what is not set here, ./book sets, and what is not read, it reads

web() {  # [--open] [--pdf] [--public]
    local option open='' pdf='' site=$root/out/web public=()
    for option in "$@"; do
        case $option in
            --open) open=yes ;;
            --pdf) pdf=yes ;;
            --public) site=$root/out/public public=(-D book_public=1) ;;
            *) bad_input "web does not take '$option'; it takes --open, --pdf and --public." ;;
        esac
    done
    folder=$root/build/web log=$folder/book.log
    [[ ! $pdf ]] || command -v chromium >/dev/null || fail "--pdf prints with Chromium: apt install chromium"
    lock_folder
    prepare_sphinx
    sphinx html "the web edition" "$site" "${public[@]}"
    if [[ $pdf ]]; then print_book; fi
    unlock_folder
    echo "$site/index.html"
    if [[ $open ]]; then
        command -v xdg-open >/dev/null || fail "--open needs xdg-open, which this machine lacks: open the page above in a browser."
        xdg-open "$site/index.html" &>/dev/null </dev/null &
    fi
}

setup_web() {
    folder=$root/build/web log=$folder/book.log
    lock_folder
    prepare_sphinx
    unlock_folder
}
# Sphinx and what it needs, of the versions that requirements.txt pins, in an environment of the build folder's own.
prepare_sphinx() {
    local python pinned=$root/tools/web/requirements.txt here=$folder/packages
    ! cmp -s "$pinned" "$here/requirements.txt" || return 0
    for python in python3 /usr/bin/python3 ''; do
        [[ $python ]] || fail "web needs a python3 of at least 3.11, with venv: apt install python3 python3-venv"
        ! "$python" -I -c 'import sys, ensurepip; exit(sys.version_info < (3, 11))' 2>/dev/null || break
    done
    rm -rf "$here"
    step "making a place for Sphinx" "$python" -I -m venv "$here" ||
        explain_web "Python cannot make an environment here; on Debian: apt install python3-venv"
    step "installing Sphinx and what it needs" "$here/bin/python" -I -m pip install --disable-pip-version-check -r "$pinned" ||
        explain_web "Sphinx could not be installed"
    cp "$pinned" "$here"
}
explain_web() {
    tail -n 3 "$log" >&2
    fail "$1; the whole log is $log"
}

sphinx() {  # BUILDER "what the reader calls it" FOLDER options...: a warning fails; all of them are in the log
    step "making $2" "$folder/packages/bin/python" -I -m sphinx -q -W --keep-going -j "$cores" -b "$1" -c "$root/tools/web" \
        -d "$folder/doctrees" "${@:4}" "$root" "$3" || {
        grep -E 'WARNING|ERROR' "$log" >&2 || true
        explain_web "$2 has not been made as it should be"
    }
}

print_book() {
    sphinx singlehtml "one long page" "$folder/page" -D html_theme=basic -D html_theme_options.nosidebar=1 \
        -D html_css_files=print.css -D html_js_files=
    step "printing it" timeout 300 chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --generate-pdf-document-outline \
        --print-to-pdf="$root/out/ddp_by_hand.pdf" "file://$folder/page/README.html" || explain_web "Chromium cannot print the book"
    rm -rf "$folder/epub"  # what an earlier one has left there is no part of it
    sphinx epub "an EPUB" "$folder/epub"
    cp "$folder/epub/ddp_by_hand.epub" "$root/out"
    printf '%s\n' "$root/out/ddp_by_hand.pdf" "$root/out/ddp_by_hand.epub"
}
