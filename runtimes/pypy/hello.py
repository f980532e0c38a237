import sys

print("Hello, World!" if "PyPy" in sys.version else sys.version)
