# title: Sends a signal to a process of the host
# how: Signal 0 changes nothing, but "not permitted" instead of "no such process" shows that the process
#   is in reach and only its owner protects it.
# without: pid-namespace
# args: {host_pid}
# root-only: yes
# expect: held
if answer=$(LC_ALL=C kill -0 "$1" 2>&1); then
    echo "BREACH the signal was delivered"
elif [[ $answer == *"not permitted"* ]]; then
    echo "BREACH the process is in reach"
else
    echo "HELD ${answer##*- }"
fi
