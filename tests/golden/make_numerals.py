#!/usr/bin/env python3
"""Makes tests/golden/words/numerals.txt: numbers in words, by Python's num2words.

    python3 tests/golden/make_numerals.py     takes a Python with num2words (pip install num2words)

The first line has the CRC-32 of all numbers from 0 to 999,999, as lines
"21<tab>twenty-one<tab>ventuno"; the others are a sample of them, which shows where a difference is.

English is num2words' without "and" and commas. Italian is num2words' without two faults of version
0.5.14: it spells 18 diciotto but 118 centodicotto, and 23 ventitré but 123 centoventitre. The
script counts what it mends.
"""
import pathlib
import zlib
from importlib import metadata

import num2words

FILE = pathlib.Path(__file__).resolve().parent / "words" / "numerals.txt"
mended = {"diciotto": 0, "accent": 0}


def english(number):
    return num2words.num2words(number).replace(" and ", " ").replace(",", "")


def italian(number):
    words = num2words.num2words(number, lang="it")
    if "dicotto" in words:
        mended["diciotto"] += 1
        words = words.replace("dicotto", "diciotto")
    if number > 3 and words.endswith("tre"):
        mended["accent"] += 1
        words = words[:-1] + "é"
    return words


def main():
    every = range(1_000_000)
    sample = {*range(21), 21, 23, 28, 30, 33, 38, 40, 48, 50, 60, 70, 80, 88, 90, 99}
    sample |= {100, 101, 103, 108, 118, 123, 180, 188, 200, 888, 999}
    sample |= {1000, 1001, 1100, 2000, 3008, 10_000, 21_021, 80_003, 100_000, 108_108, 180_180,
               808_323, 999_999}
    crc, lines = 0, []
    for number in every:
        line = f"{number}\t{english(number)}\t{italian(number)}\n"
        crc = zlib.crc32(line.encode(), crc)
        if number in sample:
            lines.append(line)
    FILE.write_text(f"num2words {metadata.version('num2words')}, crc32 {crc}\n" + "".join(lines))
    print(f"{len(lines)} of {len(every)} numbers written; mended: {mended}")


main()
