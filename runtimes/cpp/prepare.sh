# Precompiles the headers with which most programs begin. Arguments: the compiler and the flags with
# which programs will be compiled; the compiler takes a precompiled header only if they are the same.
#
# The compiler takes such a file only for the first #include of a program, only for exactly this
# header, and only if no macro defined before could matter (_GLIBCXX_DEBUG, for instance). Everything
# else finds the header itself, further down the search path. The program that comes out is the same
# to the byte.
mkdir -p layer/bits
for header in iostream bits/stdc++.h; do
    # By its own path, because messages about a program name the file that was precompiled.
    path=$(echo "#include <$header>" | "$@" -x c++ -M - | tr ' ' '\n' | grep -m 1 "^/.*/$header\$")
    # A library without this header does without.
    [ -n "$path" ] || continue
    # Without -w it would be told that a header is no program.
    "$@" -w -x c++-header -o "layer/$header.gch" "$path" || exit
done
