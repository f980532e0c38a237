# Vendored crates need no installing: they and their lock are what a compile stage is shown.
set -e
mkdir layer
mv fetched layer/vendor
sed -n 's/^# asked: //p' lock >layer/dependencies
grep -v '^# asked: ' lock >layer/Cargo.lock
