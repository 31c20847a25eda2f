"""The text face of the book, cut to the signs that it prints: vendor/_static/fonts.

    python tools/make_fonts.py FOLDER

FOLDER holds the unpacked npm package named in vendor/_static/fonts/README.md.  Needs fonttools, which matplotlib brings,
and brotli, which nothing else here does: install it where you run this.
"""
import shutil
import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

FONTS = Path(__file__).resolve().parents[1]/"vendor/_static/fonts"
CUTS = {"regular": "400Regular", "italic": "400Regular_Italic", "semibold": "600SemiBold"}
SIGNS = [*range(0x20, 0x7F), *range(0xA0, 0x100),                     # Latin
         *map(ord, "ąćčęěğıłńőřśşšůźżž"                                # names
              "ΔΣΨαβγδεηκλμπρσ₀₁₂₃₄⁰⁴⁵⁶⁷⁸⁹⁻⅓⅔–—‘’“”…\u2011\u2060ℓ→↑↓↗−√∞≈≤≥")]
FEATURES = ["kern", "liga", "tnum"]


def cut(source, target):
    """A font file with SIGNS and FEATURES only, unhinted, as woff2."""
    options = subset.Options(flavor="woff2", layout_features=FEATURES, hinting=False, desubroutinize=True, name_IDs=[0, 1, 2, 13, 14])
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=SIGNS)
    font = TTFont(source, recalcTimestamp=False)
    subsetter.subset(font)
    subset.save_font(font, target, options)


def main(folder):
    FONTS.mkdir(exist_ok=True)
    for name, theirs in CUTS.items():
        cut(folder/theirs/f"SourceSerif4_{theirs}.ttf", FONTS/f"serif-{name}.woff2")
    shutil.copy(folder/"LICENSE_FONT", FONTS/"LICENSE")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
