# title: Lists the host's network interfaces
# how: Names and counters of interfaces tell what networks the machine is on and how busy they are.
# without: net-namespace
# optional: a host without any interface but loopback has nothing to show
# expect: held
others=$(tail -n +3 /proc/self/net/dev 2>/dev/null | cut -d: -f1 | tr -d ' ' | grep -vx lo | tr '\n' ' ')
if [ -n "$others" ]; then
    echo "BREACH interfaces: $others"
else
    echo "HELD only loopback"
fi
