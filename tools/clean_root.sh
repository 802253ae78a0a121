#!/usr/bin/env bash
# Installs packages in a clean Debian 12 (debootstrap) and does the main job there: forge a fault, name it, read the page.
# Usage: tools/clean_root.sh dist/*.deb        needs root and debootstrap; CULPRIT_MIRROR names a mirror of Debian
set -euo pipefail
[[ $# -gt 0 ]] || { echo "usage: tools/clean_root.sh PACKAGE.deb..." >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "tools/clean_root.sh: needs debootstrap: apt-get install debootstrap" >&2; exit 2; }

root=$(mktemp -d)
cleanup() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" ${CULPRIT_MIRROR:+"$CULPRIT_MIRROR"} >"$root.log" 2>&1 ||
  { tail -20 "$root.log" >&2; exit 1; }
rm -f "$root.log"
mkdir "$root/packages"
cp "$@" "$root/packages"
# What apt needs to reach its mirror from here.
[[ ! -e /etc/apt/apt.conf ]] || cp /etc/apt/apt.conf "$root/etc/apt/apt.conf"
[[ ! -d /etc/apt/apt.conf.d ]] || cp -n /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp -f /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true

# A program finds itself by /proc; where it may not be mounted, ranks are not tried.
mount -t proc proc "$root/proc" 2>/dev/null || echo "clean_root: /proc may not be mounted here, so several ranks are not tried" >&2

chroot "$root" /bin/bash -euo pipefail <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
cd /packages
echo 'APT::Sandbox::User "root";' >/etc/apt/apt.conf.d/99sandbox  # /packages is no place that _apt may read
apt-get update -qq
apt-get install -y -qq --no-install-recommends ./culprit_*.deb >/dev/null
! dpkg -l | grep -q openmpi || { echo "culprit brings MPI along" >&2; exit 1; }
cd /tmp
culprit --version
culprit forge glm5 --steps 4 -o glm5.json
culprit glm5.json --markdown out.md | sed -n 1,8p
culprit glm5.json --json | grep -q '"id": "whole-pool-cast"'
gzip -9 <glm5.json >glm5.json.gz && culprit glm5.json.gz --quiet | grep -q whole-pool-cast
culprit lab run --preset tiny-glm-5 --prompt-length 8 --new 4 --quiet
for page in man/man1/culprit.1 bash-completion/completions/culprit zsh/site-functions/_culprit fish/vendor_completions.d/culprit.fish doc/culprit/copyright; do
  test -s /usr/share/$page || { echo "lacks /usr/share/$page" >&2; exit 1; }
done
if ls /packages/culprit-mpi_*.deb >/dev/null 2>&1; then
  apt-get install -y -qq --no-install-recommends /packages/culprit-mpi_*.deb >/dev/null
  test ! -e /proc/self/exe || OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 culprit lab run --preset tiny-glm-5 --prompt-length 8 --new 4 --tp 2 --quiet
fi
apt-get remove -y -qq culprit >/dev/null
test ! -e /usr/bin/culprit || { echo "culprit is still there" >&2; exit 1; }
INSIDE
echo "clean Debian 12: installed, ran, removed"
