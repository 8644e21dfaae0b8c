#!/bin/sh
# Gets Chromium without a window for tests: unpacks Debian's, with the libraries that are missing here, into a folder.
# Nothing is installed. On other systems AMKC_BROWSER names one that is there.
set -eu
folder=$1
program=$folder/headless-shell
if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "browser.sh: no apt-get here; set AMKC_BROWSER to a Chromium of version 120 or later" >&2
  exit 1
fi
mkdir -p "$folder/archives/partial" "$folder/root"
folder=$(cd "$folder" && pwd)
apt-get install -qq -y --no-install-recommends --download-only -o Dir::Cache::archives="$folder/archives" \
  -o Debug::NoLocking=1 chromium-headless-shell >&2
for archive in "$folder"/archives/*.deb; do
  dpkg -x "$archive" "$folder/root"
done
rm -rf "$folder/archives"
libraries=$(find "$folder/root" -name '*.so*' -exec dirname {} + | sort -u | tr '\n' ':')
shell=$(find "$folder/root/usr/lib" -type f -name chromium-headless-shell)
cat >"$program.new" <<END
#!/bin/sh
LD_LIBRARY_PATH=$libraries exec $shell "\$@"
END
chmod +x "$program.new"
"$program.new" --version >&2
mv "$program.new" "$program"
