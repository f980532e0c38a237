"""Text and binary files, seeking, directories, temporary files, a database and an archive."""

import csv
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import tempfile
import zipfile

root = pathlib.Path("data")
(root / "deep" / "er").mkdir(parents=True)
(root / "notes.txt").write_text("one\ntwo\nthree\n")
with open(root / "notes.txt", "a+") as file:
    file.write("four\n")
    file.seek(4)
    print(file.readline().strip(), file.tell())

with open(root / "deep" / "records.bin", "wb+") as file:
    for number in range(100):
        file.write(struct.pack("<Id", number, number / 4))
    file.seek(12 * 42)
    print(struct.unpack("<Id", file.read(12)), os.fstat(file.fileno()).st_size)

with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    csv.writer(file).writerows([["name", "note"], ["Ada", 'says "hi", twice']])
print(list(csv.DictReader(open(file.name)))[0]["note"])
os.remove(file.name)

with zipfile.ZipFile(root / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write(root / "notes.txt", "notes.txt")
print(zipfile.ZipFile(root / "all.zip").read("notes.txt").split())

database = sqlite3.connect(root / "deep" / "er" / "birds.db")
database.execute("create table birds (name text, grams real)")
database.executemany("insert into birds values (?, ?)", [("wren", 9.5), ("rook", 450), ("tern", 110)])
print(database.execute("select name from birds where grams > 100 order by grams").fetchall())
database.close()

os.symlink("notes.txt", root / "link")
print(sorted(str(path.relative_to(root)) for path in root.rglob("*")), (root / "link").read_text()[:3])
shutil.rmtree(root)
print(root.exists())
json.dump({"kept": [1, 2.5, None, True]}, open("result.json", "w"))
