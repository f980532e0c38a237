# title: Lists a directory of the host
# how: Even the names of files tell who and what is on the machine.
# without: fresh-root
# args: {host_dir}
# expect: held
if listing=$(ls -a "$1" 2>&1); then
    echo "BREACH listed $(echo "$listing" | wc -l) names"
else
    echo "HELD ${listing##*: }"
fi
