#!/bin/sh
# Makes the passwords and addresses of compose.yaml in secrets/, unless they are there already.
# The folder is for its owner only; the files are not, because the containers' user is another one.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 700 secrets
for name in mysql_root mysql_patra mysql_dagster; do
    [ -e "secrets/$name" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$name"
done
# Within this machine's private network only: MySQL elsewhere wants ssl_ca instead of ssl_disabled.
options='connect_timeout=10&read_timeout=60&write_timeout=60&ssl_disabled=true'
[ -e secrets/PATRA_DB_URL ] ||
    printf 'mysql+pymysql://patra:%s@mysql:3306/patra?%s' "$(cat secrets/mysql_patra)" "$options" \
        > secrets/PATRA_DB_URL
[ -e secrets/DAGSTER_MYSQL_URL ] ||
    printf 'mysql+pymysql://dagster:%s@mysql:3306/dagster?%s' "$(cat secrets/mysql_dagster)" "$options" \
        > secrets/DAGSTER_MYSQL_URL
chmod 644 secrets/*
