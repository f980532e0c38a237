"""Text in many scripts: input, lengths, normal forms, case, and the name of a file."""

import os
import sys
import unicodedata

for line in sys.stdin:
    text = line.rstrip("\n")
    print(f"{len(text)} characters, {len(text.encode())} bytes: {text[::-1]}")

composed = "é"
decomposed = unicodedata.normalize("NFD", composed)
print(len(composed), len(decomposed), composed == decomposed)
print(unicodedata.normalize("NFC", decomposed) == composed, unicodedata.normalize("NFKC", "ﬁ①"))
print("straße".upper(), "ΑΣ".lower(), "İ".lower().encode("unicode-escape").decode(), "Straße".casefold())
print([unicodedata.name(letter) for letter in "Ωж中"])
print("👩‍🚀".encode("utf-16-le").hex(" ", 2), len("👩‍🚀"))

with open("grüße-世界.txt", "w", encoding="utf-8") as file:
    file.write("Привет, мир\n")
print(sorted(os.listdir("."))[0:2], sys.getfilesystemencoding())
try:
    b"\xff\xfe".decode()
except UnicodeDecodeError as error:
    print(error.reason, b"\xff".decode(errors="replace"))
