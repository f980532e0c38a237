# Fetches crates and all they need, with the cargo in $PACKAGE_MANAGER and the rustc in $1: what the file
# "packages" asks for, as lines of a Cargo.toml, or exactly what the file "lock" says.
set -e
export RUSTC="$1" CARGO_HOME=/tmp/cargo CARGO_NET_RETRY="${CARGO_NET_RETRY:-1}"
mkdir -p /tmp/cargo /tmp/project/src fetched
if [ -n "$CARGO_HOST_CONFIG" ]; then cp "$CARGO_HOST_CONFIG" /tmp/cargo/config.toml; fi
here="$PWD"
cd /tmp/project
echo 'fn main() {}' >src/main.rs
if [ -f "$here/lock" ]; then
    # What was asked for stands before what it came to.
    sed -n 's/^# asked: //p' "$here/lock" >asked
    cp "$here/lock" Cargo.lock
    locked=--locked
else
    cp "$here/packages" asked
    locked=
fi
printf '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n' >Cargo.toml
cat asked >>Cargo.toml
"$PACKAGE_MANAGER" vendor $locked --versioned-dirs "$here/fetched" >/tmp/settings
{
    sed 's/^/# asked: /' asked
    grep -v '^# asked: ' Cargo.lock
} >"$here/lock.new"
mv "$here/lock.new" "$here/lock"
