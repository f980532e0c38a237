# Fetches Python packages and all they need, with the pip in $PACKAGE_MANAGER under the Python in $1:
# what the file "packages" asks for, or exactly what the file "lock" says.
set -e
export PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_PROGRESS_BAR=off
export PIP_RETRIES="${PIP_RETRIES:-2}"
mkdir fetched built
if [ -f lock ]; then
    "$1" "$PACKAGE_MANAGER" download --no-deps --require-hashes -r lock -d fetched
else
    "$1" "$PACKAGE_MANAGER" download --prefer-binary -r packages -d fetched
fi
# What comes as source is built here, where what it needs for that can still be fetched.
for file in fetched/*; do
    case "$file" in
        *.whl) ;;
        *) "$1" "$PACKAGE_MANAGER" wheel --no-deps -w built "$file" ;;
    esac
done
