# title: Learns the host's accounts
# how: /etc/shadow and the host's user list would name the people and services on the machine.
# without: fresh-root
# expect: held
if [ -e /etc/shadow ]; then
    echo "BREACH /etc/shadow is there, and $(wc -l < /etc/passwd) accounts"
else
    echo "HELD no /etc/shadow"
fi
