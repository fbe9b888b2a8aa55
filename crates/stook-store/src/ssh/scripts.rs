//! What runs at the other end: small scripts for a POSIX shell, which get names as arguments.
//!
//! No script has a single quote in it, so that all of them can stand between two. A status says what was found; what the
//! programs of the other end say comes on the standard error, in English.

/// The directory is not there.
pub(super) const NO_PLACE: i32 = 65;
/// The file is not there.
pub(super) const NO_FILE: i32 = 66;
/// The condition does not hold.
pub(super) const NOT_KEPT: i32 = 67;
/// The file was changed while it was read.
pub(super) const CHANGED: i32 = 68;

/// In front of every script. `look` shows size, time, inode and time of the last change; of GNU's `stat`, or of BSD's.
/// `hash` shows an MD5, or nothing where no program computes one.
pub(super) const PRELUDE: &str = r#"
LC_ALL=C; export LC_ALL; umask 022
look() { stat -c "%s %.9Y %i %.9Z" "$1" 2>/dev/null || stat -f "%z %Fm %i %Fc" "$1"; }
hash() { { md5sum <"$1" || md5 -q <"$1" || openssl md5 -r <"$1"; } 2>/dev/null; }
enter() { [ -d "$1" ] || exit 65; cd "$1" || exit 1; }
"#;

/// Directory. Makes it, and sees that files can be made there; removes what a transfer left two days ago.
pub(super) const PREPARE: &str = r#"
mkdir -p "$1" || exit 1
enter "$1"
: >"./$2" && rm -f "./$2" || exit 1
find . ! -name . -prune -type f -name ".stook-*.partial" -mtime +1 -exec rm -f {} + 2>/dev/null
exit 0
"#;

/// Directory. Shows each file: what `look` shows, and its name.
pub(super) const LIST: &str = r#"
[ -e "$1" ] || exit 0
enter "$1"
find . ! -name . -prune -type f ! -name "*[[:cntrl:]]*" -exec stat -c "%s %.9Y %i %.9Z %n" {} + 2>/dev/null ||
find . ! -name . -prune -type f ! -name "*[[:cntrl:]]*" -exec stat -f "%z %Fm %i %Fc %N" {} +
"#;

/// Directory, name.
pub(super) const STAT: &str = r#"
[ -e "$1" ] || exit 66
enter "$1"; [ -f "./$2" ] || exit 66
look "./$2"
"#;

/// Directory, name. Shows the file; its state before and after on the standard error.
pub(super) const GET: &str = r#"
enter "$1"; [ -f "./$2" ] || exit 66
look "./$2" >&2; cat <"./$2" || exit 1; look "./$2" >&2
"#;

/// Directory, name, state, first byte (from 1), number of bytes.
pub(super) const RANGE: &str = r#"
enter "$1"; [ -f "./$2" ] || exit 66
[ "$3" = any ] || [ "$3" = "$(look "./$2")" ] || exit 68
tail -c "+$4" <"./$2" | head -c "$5"
[ "$3" = any ] || [ "$3" = "$(look "./$2")" ] || exit 68
"#;

/// Directory, temporary name. Takes the file from its input, makes it durable, and shows size and MD5 of what it reads back
/// from there. Meanwhile it shows an empty line from time to time.
pub(super) const SEND: &str = r#"
enter "$1"; cat >"./$2" || exit 1
sync "./$2" 2>/dev/null || sync
dd if="./$2" iflag=nocache count=0 2>/dev/null
(while sleep 5 </dev/null >/dev/null 2>&1; do echo; done) & beat=$!
wc -c <"./$2"; hash "./$2"; kill "$beat"; wait "$beat" 2>/dev/null; exit 0
"#;

/// Directory, name. Shows size and MD5 as it is on the disk.
pub(super) const HASH: &str = r#"
enter "$1"; [ -f "./$2" ] || exit 66
dd if="./$2" iflag=nocache count=0 2>/dev/null
(while sleep 5 </dev/null >/dev/null 2>&1; do echo; done) & beat=$!
wc -c <"./$2"; hash "./$2"; kill "$beat"; wait "$beat" 2>/dev/null; exit 0
"#;

/// Directory, temporary name, name, condition: `always`, `new`, or a state. Shows the state that the file has then.
///
/// A lock on the directory keeps other writers out, held by the system where that works, so that it goes with a process
/// that dies; else a directory. A new name is a link, which no two can make.
pub(super) const INSTALL: &str = r#"
enter "$1"; [ ! -d "./$3" ] || exit 67
if [ "$4" != always ]; then
  if ! { exec 9<. && flock 9; } 2>/dev/null; then
    mkdir ./.stook.ssh-lock || exit 67
    trap "rmdir ./.stook.ssh-lock" EXIT
    trap "exit 1" HUP INT TERM
  fi
fi
case "$4" in
always) mv -f "./$2" "./$3" || exit 1 ;;
new) [ ! -e "./$3" ] || exit 67
  if ln "./$2" "./$3" 2>/dev/null; then rm -f "./$2"; else
    [ ! -e "./$3" ] || exit 67
    mv -f "./$2" "./$3" || exit 1
  fi ;;
*) [ -f "./$3" ] && [ "$4" = "$(look "./$3")" ] || exit 67
  mv -f "./$2" "./$3" || exit 1 ;;
esac
sync . 2>/dev/null
look "./$3"
"#;

/// Directory, name.
pub(super) const DELETE: &str = r#"
[ -e "$1" ] || exit 0
enter "$1"; rm -f "./$2"
"#;
