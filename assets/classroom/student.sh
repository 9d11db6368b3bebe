#!/bin/sh
# The hub runs this as the student: the newest lessons into ~/course, then JupyterLab.
course=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
umask 077                                               # what it writes is the student's alone
ulimit -d "$((MEM_LIMIT / 1024))"                       # each process; one that wants more gets a MemoryError

# Git reads the teacher's checkout, and no other folder that is not the student's
export GIT_CONFIG_SYSTEM="$HOME/.mhsa-gitconfig"
printf '[safe]\n\tdirectory = %s\n\tdirectory = %s/.git\n[include]\n\tpath = /etc/gitconfig\n' "$course" "$course" \
    >"$GIT_CONFIG_SYSTEM"

# Trouble here leaves the lessons as they were
gitpuller "file://$course" "" "$HOME/course"
python -m nbformat.sign "$course"/notebooks/*.ipynb >/dev/null  # as `jupyter trust`, the teacher's: pictures show at once

exec jupyterhub-singleuser "$@"
