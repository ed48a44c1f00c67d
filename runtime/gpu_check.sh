#!/usr/bin/env bash
# gpu_check.sh BUILD [--pack DIR [PACK OPTIONS]] [CHECK OPTIONS]: called by ./dev gpu-check after building.
# Without --pack, the modules are compiled for the GPU of this machine and run at once; with it, a folder is written
# for a machine that has only a driver. docs/gpu_check.md has the options of both.
set -euo pipefail
build=$1
shift
bin=$build/bin

if [ "${1:-}" = --pack ]; then
    folder=${2:-}
    [ -n "$folder" ] || { echo "gpu-check: --pack needs a folder" >&2; exit 2; }
    shift 2
    "$bin/baton-gpu-pack" "$folder/modules" "$@"
    cp -f "$bin/baton-gpu-check" "$folder/baton-gpu-check"
    strip "$folder/baton-gpu-check" 2>/dev/null || true # smaller, where there is a strip
    cat >"$folder/run.sh" <<'RUN'
#!/bin/sh
# Runs every collective on one GPU of this machine. Needs the C library and the NVIDIA driver, nothing else.
# Options go to baton-gpu-check; --help lists them.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
exec "$here/baton-gpu-check" "$@"
RUN
    chmod +x "$folder/run.sh"
    echo "copy $folder to the machine with the GPU; there: ./run.sh"
    exit 0
fi

modules=$build/gpu_check
wanted=" $* "
case "$wanted" in
    *" --help "* | *" -h "*) exec "$bin/baton-gpu-check" --help ;;
    *" --modules "*) exec "$bin/baton-gpu-check" "$@" ;;
    *" --backend cpu "* | *" --backend=cpu "*)
        modules=$modules/cpu
        "$bin/baton-gpu-pack" "$modules" --host --no-cubins
        ;;
    *)
        # The same GPU as the check will use.
        device=0
        case "$wanted" in
            *" --device "*) device=${wanted#* --device } && device=${device%% *} ;;
        esac
        architecture=$("$bin/baton-gpu-check" --probe --device "$device")
        modules=$modules/$architecture
        "$bin/baton-gpu-pack" "$modules" --arch "$architecture"
        ;;
esac
exec "$bin/baton-gpu-check" --modules "$modules" "$@"
