#!/bin/sh
# Every secret whose file is named like an environment variable becomes that variable; then the
# command takes this process's place, so that SIGTERM reaches it. Values are never printed.
set -eu
for file in "${SECRETS_FOLDER:-/run/secrets}"/*; do
    name=$(basename "$file")
    case $name in
        [!A-Z]* | *[!A-Z0-9_]*) continue ;;
    esac
    [ -f "$file" ] && export "$name=$(cat "$file")"
done
exec "$@"
