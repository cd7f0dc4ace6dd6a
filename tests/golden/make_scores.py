#!/usr/bin/env python3
"""Makes tests/golden/words/scores.txt: BLEU and chrF by sacrebleu, edit distances by rapidfuzz.

    python3 tests/golden/make_scores.py     takes both (pip install sacrebleu rapidfuzz)

A case is a set of translations with their references, and has the line

    case NAME PAIRS BLEU CHRF CHARACTER_ERRORS WORD_ERRORS

and then its pairs, as lines "translation<tab>reference". The sentences below are references;
translations are made of them by seeded damage.
"""
import pathlib
import random
from importlib import metadata

import sacrebleu
from rapidfuzz.distance import Levenshtein

FILE = pathlib.Path(__file__).resolve().parent / "words" / "scores.txt"

ENGLISH = """\
The program reads a file, line by line, and prints what it has found.
Fonts for mathematics, 3.14 times larger than those of version 2.0
It's an e-mail client (with a calendar) for people who write 1,000 letters a day.
Common files of all translators: English, Italian, Greek ...
A 64-bit library - shared - for reading "old" archives; see /usr/share/doc.
one hundred twenty-three thousand four hundred fifty-six
twenty-one
The cat sat on the mat.
Compute the price of 5,5 kg at $4.50/kg, or 10% less!
C++ headers [debug], {development} & <documentation>
""".splitlines()
ITALIAN = """\
Il programma legge un file, riga per riga, e mostra ciò che ha trovato.
Caratteri per la matematica, 3,14 volte più grandi di quelli della versione 2.0
È un programma di posta elettronica (con un calendario) per chi scrive 1.000 lettere al giorno.
File comuni di tutti i traduttori: inglese, italiano, greco…
Una libreria a 64 bit – condivisa – per leggere archivi «vecchi»; vedere /usr/share/doc.
centoventitremilaquattrocentocinquantasei
ventuno
Il gatto era seduto sull'immagine del tappeto.
Calcola il prezzo di 5,5 kg a 4,50 €/kg, o il 10% in meno!
Perché l'università di città così è più giù: dell'età, dell'attività
""".splitlines()
ODD = ["", " ", "...", "a", "1-2-3", "x.,y", ",.5.,5", "&quot;a&quot; &amp;lt; &lt;b&gt;",
       "<skipped>a<skipped>", "a\u00a0b\u3000c", "日本語 の 文。", "𝄞 𝄢𝄫", "e\u0301 é", "5-a a-5",
       "'tis 'l'", "a.b 1.b a.1 1.1", "--", "a,,b", "[a]`b`{c}~", "caffè  latte ", "x\u2028y"]


def damaged(sentence, rng):
    """Words lost, doubled and exchanged, and letters changed."""
    words = sentence.split(" ")
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(words))
        what = rng.randrange(4)
        if what == 0 and len(words) > 1:
            del words[at]
        elif what == 1:
            words.insert(at, words[rng.randrange(len(words))])
        elif what == 2:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif words[at]:
            letter = rng.randrange(len(words[at]))
            words[at] = words[at][:letter] + rng.choice("aeiouà.,-5 ") + words[at][letter + 1:]
    return " ".join(words)


def case(name, pairs):
    translations, references = [list(side) for side in zip(*pairs)]
    bleu = sacrebleu.corpus_bleu(translations, [references]).score
    chrf = sacrebleu.corpus_chrf(translations, [references]).score
    characters = sum(Levenshtein.distance(a, b) for a, b in pairs)
    words = sum(Levenshtein.distance(a.split(), b.split()) for a, b in pairs)
    lines = [f"case {name} {len(pairs)} {bleu:.10g} {chrf:.10g} {characters} {words}"]
    return lines + [f"{a}\t{b}" for a, b in pairs]


def main():
    rng = random.Random(18)
    lines = [", ".join(f"{name} {metadata.version(name)}" for name in ("sacrebleu", "rapidfuzz"))]
    for name, sentences in ("english", ENGLISH), ("italian", ITALIAN), ("odd", ODD):
        lines += case(f"{name}_right", [(s, s) for s in sentences])
        for k in range(3):
            lines += case(f"{name}_{k}", [(damaged(s, rng), s) for s in sentences])
        lines += case(f"{name}_exchanged", list(zip(sentences[1:] + sentences[:1], sentences)))
        lines += case(f"{name}_empty", [("", s) for s in sentences])
        lines += case(f"{name}_too_long", [(f"{s} {s}", s) for s in sentences])
        lines += case(f"{name}_half", [(s[:len(s) // 2], s) for s in sentences])
    for k in range(40):  # single sentences, which take all of the smoothing
        sentence = rng.choice(ENGLISH + ITALIAN + ODD)
        lines += case(f"single_{k}", [(damaged(damaged(sentence, rng), rng), sentence)])
    for k in range(30):  # pieces of all of them
        text = " ".join(ENGLISH + ITALIAN + ODD)
        at, length = rng.randrange(len(text) - 40), rng.randrange(1, 40)
        piece = text[at:at + length]
        lines += case(f"piece_{k}", [(piece[rng.randrange(3):], piece)])
    assert all(line.count("\t") == 1 or line.startswith("case ") for line in lines[1:])
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(sum(line.startswith("case ") for line in lines), "cases written")


main()
