# title: Opens descriptors as files through /proc/self/fd
# how: Opening such a link gives a new description of the file behind it, with rights the old one did
#   not have. Bash keeps its own script at 255, which is not counted.
# without: closed-descriptors
# expect: held
for number in {3..254}; do
    if [ -e "/proc/self/fd/$number" ]; then
        echo "BREACH /proc/self/fd/$number leads somewhere"
        exit 0
    fi
done
echo "HELD nothing behind 3 to 254"
