"""The simulated shell beside bash: one line after the other on the same files in a real folder.

All lines run in one shell of either kind, every line in a subshell with a folder of its own ("↵" is
the end of a line within one). What it prints, its exit code and the files and modes that it leaves
have to be the same. Those in DIFFERS are known not to be.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from backends.memory import File, MemoryBackend, Symlink

if TYPE_CHECKING:
    from collections.abc import Mapping

pytest.importorskip("just_bash", reason="the extra `shell` is not installed")
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")

FILES = {
    "a.txt": "one\ntwo\nthree\n",
    "n.txt": "3\n10\n2\n",
    "rows.csv": "x,1\ny,2\nx,3\n",
    "src/main.py": "def f():\n    return 1\n",
    "src/util.py": "import os\n",
    "deep/er/f.txt": "deep\n",
    "s p.txt": "space\n",
    "run.sh": "#!/bin/sh\necho run $1 $#\nexit 4\n",
    "empty": "",
    "unended": "no newline",
}
EXECUTABLE = {"run.sh"}

SAME = r"""
ls | grep txt > y
echo hi; echo bye
echo "a  b" 'c$d' $((6*7)) ${NOT_THERE:-x}
cat a.txt | sort -r | head -n 2
cat unended a.txt; cat unended | wc -c
wc -l < a.txt
wc -l a.txt
sort -n n.txt
sort n.txt | uniq -c
cut -d, -f1 rows.csv | sort | uniq -c | sort -rn
grep -n t a.txt
grep -c o a.txt; grep -v o a.txt; grep -q nope a.txt; echo $?
sed 's/o/0/g' a.txt
sed -i 's/one/ONE/' a.txt; cat a.txt
sed -n 2p a.txt
awk '{print $1}' a.txt
awk -F, '{s+=$2} END {print s}' rows.csv
find . -name '*.txt' | sort
find src -type f | sort
mkdir -p x/y/z && touch x/y/z/f && ls x/y
cp a.txt copy.txt; cp -r deep deeper; ls deeper/er
mv a.txt moved.txt; ls
mv a.txt src; ls src
rm a.txt; rm -r deep; ls
rm -rf nope deep
ln -s a.txt l; cat l; readlink l
ln a.txt hard; echo x >> hard; cat a.txt
chmod 600 a.txt; chmod +x empty
echo one > o; echo two >> o; cat o
false && echo no; true && echo yes; false || echo or
for i in 1 2 3; do echo $i; done
for f in *.txt; do echo "$f"; done
i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done
while read -r l; do echo "<$l>"; done < a.txt
cat a.txt | while read l; do echo "[$l]"; done
if [ -f a.txt ]; then echo file; elif [ -d a.txt ]; then echo dir; fi
[[ abc == a* ]] && echo m; [[ abc =~ b(.) ]] && echo ${BASH_REMATCH[1]}
case foo.txt in *.py) echo py;; *.txt) echo txt;; esac
f() { echo "$1-$2"; return 3; }; f a b; echo $?
a=(x y z); echo ${a[1]} ${#a[@]} "${a[@]}"
declare -A m; m[k]=v; echo ${m[k]}
x=hello; echo ${x^^} ${x#he} ${x%lo} ${x/l/L} ${#x} ${x:1:3}
echo $(cat n.txt)
cd src && ls; cd - > /dev/null; ls -1 src
export V=1; env | grep '^V='
V=2 bash -c 'echo $V'; bash -c 'exit 7'; echo $?
./run.sh hello; echo $?
sh run.sh x y
set -e; false; echo never
set -o pipefail; false | true; echo $?
exit 300
cat <<EOF > q.txt; cat q.txt↵a $((1+1))↵EOF
cat <<'EOF' > q.txt↵$x↵EOF
printf '%s-%03d\n' a 7
seq 3; seq 2 2 6
tr a-z A-Z < a.txt
head -1 a.txt; tail -1 a.txt; tail -n +2 a.txt
basename /a/b.txt .txt; dirname /a/b.txt
tee t1 < a.txt | wc -l
echo a b c | xargs -n 2
{ echo a; echo b; } > g; cat g
ls nope 2>/dev/null; echo $?; ls nope 2>&1 | wc -l
echo {1..3} {a,b}c
test -e a.txt -a -s empty; echo $?
cat "s p.txt"; cat s\ p.txt
echo -n x; echo -e 'a\nb'
md5sum a.txt; base64 <<< hi; stat -c %s a.txt
let x=3*4; echo $x; ((x++)); echo $x
eval "echo hi"; . ./run.sh
comm -12 <(sort a.txt) <(sort n.txt)
find . -type f | grep deep | xargs grep -l deep
mkdir new; echo > new/file
echo é | wc -c; echo 'naïve' > é; ls é
rm nope 2>&1; cat nope 2>&1; nosuch 2> /dev/null; echo $?
"""

DIFFERS = r"""
umask
yes | head -2
kill -0 $$; echo $?
trap 'echo bye' EXIT; echo hi
timeout 0.1 sleep 0.2; echo $?
awk '{print NR": "$0}' a.txt
printf '\xff' | wc -c
diff a.txt n.txt
ls -a deep
wc a.txt n.txt
grep -rn import src
ln -s nowhere broken; rm broken
cat a.txt > a.txt; cat a.txt
echo lost > nodir/f
cat unended | sed p
ls *.txt | xargs -n1 echo f
seq 100001 | wc -l
echo $(( 9223372036854775807 + 1 ))
"""


@dataclass(frozen=True)
class Outcome:
    """What came of one line."""

    said: bytes
    files: Mapping[str, Any]


def _lines(text: str) -> list[str]:
    return [line.replace("↵", "\n") for line in text.strip().splitlines()]


LINES = [*_lines(SAME), *_lines(DIFFERS)]
_TOLD = pytest.mark.xfail(strict=True, reason="docs/memory.md tells so")
CASES = [
    *(pytest.param(i, id=line) for i, line in enumerate(_lines(SAME))),
    *(pytest.param(i, id=LINES[i], marks=_TOLD) for i in range(len(_lines(SAME)), len(LINES))),
]


def _script() -> str:
    """Return all lines as one script that runs in a folder which holds theirs."""
    parts = [f'(\ncd w{i} && {line}\n)\necho "<<$? of {i}>>"' for i, line in enumerate(LINES)]
    return "\n".join(parts) + "\n"


def _outcomes(output: bytes, files: Mapping[str, Any]) -> list[Outcome]:
    outcomes = []
    for index in range(len(LINES)):
        mark = output.index(b" of %d>>\n" % index)
        end = output.index(b"\n", mark) + 1
        said, output = output[:end], output[end:]
        prefix = f"w{index}/"
        own = {path[len(prefix) :]: seen for path, seen in files.items() if path.startswith(prefix)}
        outcomes.append(Outcome(said, own))
    return outcomes


def _in_memory() -> list[Outcome]:
    seeds = {
        f"w{i}/{name}": File(text, mode=0o755 if name in EXECUTABLE else 0o644)
        for i in range(len(LINES))
        for name, text in FILES.items()
    }
    backend = MemoryBackend(seeds, shell="simulated")
    output = bytearray()

    async def run() -> None:
        await backend.exec(_script(), cwd="/work", on_data=output.extend, timeout_s=60)

    anyio.run(run)
    files = {
        path: (backend.lstat(path).mode, seen.target if isinstance(seen, Symlink) else seen)
        for path, seen in backend.snapshot().items()
    }
    return _outcomes(bytes(output), files)


def _on_disk(folder: Path) -> list[Outcome]:
    for index in range(len(LINES)):
        for name, text in FILES.items():
            path = folder / f"w{index}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name in EXECUTABLE else 0o644)
    done = subprocess.run(
        ["bash", "-c", f"umask 022\n{_script()}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        timeout=60,
        check=False,
    )
    files: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name, status = str(path.relative_to(folder)), path.lstat()
        if path.is_symlink():
            seen: Any = os.readlink(path)
        elif path.is_dir():
            name, seen = f"{name}/", None
        else:
            seen = path.read_bytes()
        files[name] = (stat.S_IMODE(status.st_mode), seen)
    return _outcomes(done.stdout, files)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Outcome], list[Outcome]]:
    """Run all lines in both shells."""
    folder = tmp_path_factory.mktemp("disk")
    return _in_memory(), _on_disk(folder)


@pytest.mark.parametrize("index", CASES)
def test_a_line_does_what_it_does_in_bash(
    index: int, both: tuple[list[Outcome], list[Outcome]]
) -> None:
    """Output, exit code, files and their modes are the same."""
    simulated, real = both
    assert simulated[index] == real[index]
