# title: Opens a file that nobody may open
# how: A file with mode 000 yields only to the capability that overrides permissions.
# without: capabilities
# expect: held
import os

with open("closed", "w") as file:
    file.write("closed")
os.chmod("closed", 0)
try:
    print("BREACH read", open("closed").read())
except OSError as error:
    print("HELD open:", error.strerror)
