# Shared by the scripts beside it: finding and installing what they need. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit

# need_rust: Rust is the one thing that no script installs.
need_rust() {
    local want have
    want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if ! command -v cargo >/dev/null 2>&1; then
        [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
    fi
    if ! command -v cargo >/dev/null 2>&1; then
        echo "Rust is missing: Invar needs version $want or newer. Get it with rustup, see https://rustup.rs" >&2
        exit 1
    fi
    have=$(rustc --version | cut -d' ' -f2 | cut -d- -f1)
    if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n1)" != "$want" ]; then
        echo "Rust $have is too old: Invar needs $want or newer. Update it with: rustup update stable" >&2
        exit 1
    fi
}

# need_packages NAME...: installs the Debian packages that are missing. The command is printed
# first; without root or sudo it is only printed.
need_packages() {
    local missing=() name
    for name in "$@"; do
        [ "$(dpkg-query -W -f='${Status}' "$name" 2>/dev/null)" = "install ok installed" ] || missing+=("$name")
    done
    [ ${#missing[@]} = 0 ] && return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing: ${missing[*]} (the names of Debian's packages); install them and run this again" >&2
        exit 1
    fi
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null 2>&1; then sudo=(sudo); else
            echo "missing packages; as root, run this and start again:" >&2
            echo "    apt-get update && apt-get install -y ${missing[*]}" >&2
            exit 1
        fi
    fi
    echo "+ ${sudo[*]:+${sudo[*]} }apt-get update && ${sudo[*]:+${sudo[*]} }apt-get install -y ${missing[*]}"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
}

# packaged NAME...: whether the system's package lists have all of them, installed or not.
packaged() {
    command -v apt-cache >/dev/null 2>&1 || return 1
    local name
    for name in "$@"; do
        apt-cache show "$name" >/dev/null 2>&1 || return 1
    done
}

# pypi_llvm VERSION: prints the path of that release of LLVM's library as a package of PyPI brings it, or nothing.
pypi_llvm() {
    local there=$root/target/llvm-$1 lib name
    lib=$there/lib/$(uname -m)-unknown-linux-gnu
    if ! [ -d "$there" ]; then
        python3 -m venv "$there" >&2
        "$there/bin/pip" install -q --disable-pip-version-check "karellen-llvm-core==$1" >&2 || return 0
        # Wheels hold no links: the names that the loader asks for.
        for name in c++ c++abi unwind; do
            [ -e "$lib/lib$name.so.1" ] || ln -s "lib$name.so.1.0" "$lib/lib$name.so.1"
        done
    fi
    find "$there/lib" -maxdepth 1 -name 'libLLVM.so.*'
}

# quiet_drivers: without a desktop, Mesa's drivers complain about the missing variable at every start.
quiet_drivers() {
    export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}
}

# cpython VERSION: prints the path of an interpreter of that version, from the search path or pyenv.
cpython() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c "import sys, venv; assert '%d.%d' % sys.version_info[:2] == '$1'" 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# folders: the folders of this machine that the compiler would name in programs: those of crates, of Rust, and this.
folders() {
    local cargo=${CARGO_HOME:-$HOME/.cargo} folder
    cargo fetch -q --locked
    # Each source of crates by itself: its folder has a name of its own.
    for folder in "$cargo"/registry/src/* "$cargo" "$(rustc --print sysroot)" "$root"; do
        if command -v cygpath >/dev/null; then cygpath -w "$folder"; else printf '%s\n' "$folder"; fi
    done
}

# forget_folders: what is compiled from here on names files without the folders of this machine, as in messages of
# panics it would.
forget_folders() {
    local folder flags=
    while read -r folder; do
        # Of several that fit, the last one counts.
        flags="--remap-path-prefix=$folder=${flags:+$'\x1f'$flags}"
    done < <(folders)
    export CARGO_ENCODED_RUSTFLAGS=$flags
}

# names_no_folders FILE...: fails if one of them holds such a folder's name.
names_no_folders() {
    local folder failed=false
    while read -r folder; do
        if grep -aqF -- "$folder" "$@"; then
            echo "there is a folder of this machine in what is given to others: $folder" >&2
            failed=true
        fi
    done < <(folders)
    ! $failed
}

# older_libm FOLDER NAME...: into a folder, a libm.so to link with, which has what that of this machine has, and of
# these functions the version before the newest. The library that a program then loads has both, and is its system's.
older_libm() {
    local folder=$1
    shift
    mkdir -p "$folder"
    rm -f "$folder"/libm.*
    readelf --dyn-syms -W "$(cc -print-file-name=libm.so.6)" | awk -v names="$*" -v folder="$folder" '
        BEGIN { split(names, list); for (i in list) older[list[i]] = 1 }
        $7 == "UND" || $8 !~ /@/ { next }
        {
            name = version = $8
            sub(/@.*/, "", name)
            sub(/.*@/, "", version)
            # `@@` stands before the version that programs are linked with; the names of versions are objects too.
            newest = $8 ~ /@@/
            if (name == version || (name in older) == newest) next
            of[version] = of[version] " " name ";"
            kind = $4 == "OBJECT" ? "object" : "function"
            printf ".globl %s\n.type %s, @%s\n.size %s, %s\n%s: .skip %s\n", name, name, kind, name, $3, name, $3 > (folder "/libm.s")
        }
        END { for (version in of) print version " { global:" of[version] " };" > (folder "/libm.map") }
    '
    cc -shared -nostdlib -Wl,-soname,libm.so.6 -Wl,--version-script="$folder/libm.map" \
        -o "$folder/libm.so" "$folder/libm.s"
}

# needs_glibc FILE...: the newest version of glibc that one of them needs.
needs_glibc() {
    objdump -T "$@" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1
}
