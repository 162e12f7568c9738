# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests of pages in a real Chromium. Ends with 77 where there is none. $folder goes away at the end.
browser=$(command -v chromium || command -v google-chrome || true)
[[ -n $browser ]] || { echo "there is no Chromium here"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# browse WIDTH MILLISECONDS: loads checked.html, whose title says at the end whether all holds; no error may be told.
browse() {
  timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$folder/profile" \
    --enable-logging=stderr --window-size="$1,1000" --virtual-time-budget="$2" --dump-dom "file://$folder/checked.html" \
    >"$folder/dom" 2>"$folder/log" || { tail -n 5 "$folder/log"; return 1; }
  if grep CONSOLE "$folder/log"; then return 1; fi
  grep -m 1 -o '<title>[^<]*</title>' "$folder/dom" | head -n 1
  grep -q '<title>all hold</title>' "$folder/dom"
}

# look PAGE WIDTH MILLISECONDS CHECKS: a page with a script of checks behind its own.
look() {
  { cat "$1"; echo '<script>'; cat "$4"; echo '</script>'; } >"$folder/checked.html"
  echo "${1#"$folder/"}, $2 wide"
  browse "$2" "$3"
}
