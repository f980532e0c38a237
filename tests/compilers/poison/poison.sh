# Writes to everything that can be written to, in all the ways in which a later execution could be made to
# run it: as a module, a header, a start-up file, a program found first on PATH, a library to preload. What
# was written is told.
find / -path /proc -prune -o -type d -writable -print 2>/dev/null >/tmp/directories
while IFS= read -r directory; do
    for name in sitecustomize.py json.py iostream stdio.h main.c Main.java main.go .bashrc .npmrc \
        ld.so.preload config.toml .cargo/config.toml node_modules/fs/index.js go.mod package.json \
        javac.jsa libc.so.6 sh cc; do
        case $name in
        */*) mkdir -p "$directory/${name%/*}" ;;
        esac
        echo 'poison' >"$directory/$name" && written=$directory
    done 2>/dev/null
    [ "$written" = "$directory" ] && echo "wrote $directory"
done </tmp/directories

# Whoever may write to a file need not be able to write to its directory.
find / \( -path /proc -o -path /dev -o -path /work -o -path /tmp \) -prune -o \
    -type f -writable -print 2>/dev/null |
    while IFS= read -r file; do
        echo 'poison' >"$file" && echo "changed $file"
    done

# Where caches usually are, whether or not the search came upon them.
for place in /opt/layers /usr/lib /usr/include /usr/lib/python3*/__pycache__ /usr/local/lib /usr/share \
    /etc /var "$GOCACHE" "$CARGO_HOME" "$HOME/.cache" /dev/shm /dev/mqueue /root/.cache; do
    mkdir -p "$place" 2>/dev/null && echo poison >"$place/poison" 2>/dev/null && echo "wrote $place"
done
true
