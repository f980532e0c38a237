# Compiles Rust. Arguments: rustc, the entry file.
rustc=$1 entry=$2

# rustc links with a program called `cc`, and build scripts compile with it. On some systems that name
# leads through a directory that is not shown here.
mkdir /tmp/bin
ln -s /usr/bin/gcc /tmp/bin/cc
export PATH="/tmp/bin:$PATH"
# Out of the way of whatever the project calls its own.
mkdir -p .program

# With crates that were asked for, a single file is made a project that depends on all of them.
if [ -n "$CRATES" ] && [ ! -e Cargo.toml ]; then
    cat - "$CRATES/dependencies" >Cargo.toml <<END
[package]
name = "program"
version = "0.0.0"
edition = "2021"
[[bin]]
name = "program"
path = "$entry"
[dependencies]
END
    cp "$CRATES/Cargo.lock" Cargo.lock
fi

if [ ! -e Cargo.toml ]; then
    # One unit of code generation: an eighth less processor time for a short program, and the code is
    # no worse for it. Without the debugging information of the standard library there is less to
    # link (another eighth); Cargo leaves it out of a release as well. The standard library as a
    # shared object would save more, but then the program would not run without the toolchain.
    exec "$rustc" --edition 2021 -O -C codegen-units=1 -C strip=debuginfo \
        -o .program/program "$entry"
fi

# A Cargo project: dependencies lie in the project, as paths or vendored, or there are none.
# Cargo says on standard output what it made, one line of JSON for each.
export RUSTC="$rustc" CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=/tmp/target
if [ -n "$CRATES" ]; then
    mkdir "$CARGO_HOME"
    cat >"$CARGO_HOME/config.toml" <<END
[source.crates-io]
replace-with = "crates"
[source.crates]
directory = "$CRATES/vendor"
END
fi
"${rustc%/*}/cargo" build --release --offline --quiet --bins \
    --message-format=json-render-diagnostics >/tmp/made 2>/tmp/messages
status=$?
# Where the project lies here is no business of its author's.
sed "s# ($PWD)##; s#$PWD/##g" /tmp/messages >&2
[ $status = 0 ] || exit $status

# Of several programs the one whose source is the entry file, or else the first.
programs() {
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}
program=$(grep -F "\"src_path\":\"$PWD/$entry\"" /tmp/made | programs | head -n 1)
program=${program:-$(programs </tmp/made | head -n 1)}
if [ -z "$program" ]; then
    echo "error: the project has no program to run, only libraries" >&2
    exit 1
fi
mv "$program" .program/program
