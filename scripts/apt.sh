# Debian's and Ubuntu's package manager, for the scripts in this folder. Sourced after lib.sh, never run.
# shellcheck shell=bash

# apt_as_root ARGUMENTS: apt-get as root, never asking a question.
apt_as_root() {
    local as_root=()
    if [[ $EUID -ne 0 ]]; then
        have sudo || fail "not root, and there is no sudo: run this once as root"
        as_root=(sudo)
    fi
    # One of these scripts at a time: apt-get does not wait for another that updates its lists. Its own wait covers a
    # new machine that is still updating itself in the background. Closed: a service that is started keeps no lock.
    flock --close "$cache/apt.lock" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

update_package_lists_once() {
    [[ -z ${lists_updated:-} ]] || return 0
    lists_updated=1
    # One unreachable extra repository must not stop us if the main one answers: the install that
    # follows is what has to work.
    apt_as_root update || warn "apt-get update reported an error; trying to go on"
}

# install_packages PACKAGE...: all of them in one call; nothing if there are none.
install_packages() {
    [[ $# -gt 0 ]] || return 0
    if ! have apt-get; then
        fail "this is not Debian or Ubuntu, so install these yourself, under the names used there: $*"
    fi
    say "installing: $*"
    update_package_lists_once
    apt_as_root install -y --no-install-recommends "$@" >/dev/null
}

# describe_backports FOLDER: options for apt-get, in `backports`, that make it know this release's backports and nothing
# else. What it knows of them lies in FOLDER; no source is added to the host.
describe_backports() {
    local folder=$1 release mirror
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # The mirror that this host uses; backports lie beside the release.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" 2>/dev/null | head -n 1)
    mkdir -p "$folder/lists/partial"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' \
        "${mirror:-http://deb.debian.org/debian}" "$release" >"$folder/sources.list"
    backports=(-o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/lists")
}
