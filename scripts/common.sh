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

# needs_the_system_alone FILE...: fails if one of these programs and extensions loads a library that not every such
# system has. What this machine has beside counts for nothing: others lack it. Extensions have Python's libraries too.
needs_the_system_alone() {
    local file name needed failed=false
    for file in "$@"; do
        case "$(uname -s)" in
            Linux) needed=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p') ;;
            # The first line is the file's name, the next may be its own as a library.
            Darwin) needed=$(otool -L "$file" | awk 'NR > 1 { print $1 }' | grep -vxF -- "$(otool -D "$file" | tail -n 1)") ;;
            *) needed=$("$(dirname "$INVAR_LLVM_CONFIG")/llvm-readobj" --coff-imports "$file" | sed -n 's/^ *Name: //p' | tr -d '\r') ;;
        esac
        [ -n "$needed" ] || { echo "$file is not known to load any library" >&2; return 1; }
        while read -r name; do
            case "$(uname -s):$name" in
                Linux:lib[cm].so.* | Linux:libdl.so.* | Linux:librt.so.* | Linux:libpthread.so.* | Linux:libgcc_s.so.* | Linux:ld-linux*.so.*) ;;
                Darwin:/usr/lib/* | Darwin:/System/Library/*) ;;
                Linux:* | Darwin:*) false ;;
                # Microsoft's C++ library is in the system's folder where somebody put it there.
                *:[Mm][Ss][Vv][Cc][Pp]*) false ;;
                *:[Vv][Cc][Rr][Uu][Nn][Tt][Ii][Mm][Ee]* | *:[Pp]ython3*.dll) [[ $file == *.pyd ]] ;;
                *:[Aa][Pp][Ii]-[Mm][Ss]-[Ww][Ii][Nn]-*) ;;
                *) [ -f "$(cygpath "$SYSTEMROOT")/System32/$name" ] ;;
            esac || { echo "$file needs $name, which is no part of the system" >&2; failed=true; }
        done <<<"$needed"
    done
    ! $failed
}

# tree_now: each file of this tree that git does not ignore with a digest of what it holds, and the commit.
tree_now() {
    echo "$(git rev-parse HEAD) the commit"
    git ls-files -z --cached --others --exclude-standard | python3 -c '
import hashlib, os, sys
for name in sorted(set(sys.stdin.buffer.read().split(b"\0")) - {b""}):
    held = os.readlink(name) if os.path.islink(name) else open(name, "rb").read() if os.path.isfile(name) else b"nothing"
    print(hashlib.sha256(held).hexdigest(), os.fsdecode(name))
'
}

# same_tree FOLDER BEFORE: fails if the tree is no longer what `tree_now` said of it before, for then what was made
# into that folder is partly of one tree and partly of another.
same_tree() {
    local changed
    changed=$({ diff <(printf '%s\n' "$2") <(tree_now) || true; } | sed -n 's/^[<>] [0-9a-f]* //p' | sort -u)
    [ -z "$changed" ] && return 0
    echo "the tree changed while this ran, so that what is in $1 is of more than one state of it: run this again" >&2
    echo "changed: ${changed//$'\n'/, }" >&2
    return 1
}
