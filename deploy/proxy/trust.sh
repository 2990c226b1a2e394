#!/bin/sh
# Tells nginx which proxies' X-Forwarded-For to believe, before it starts: PROXY_ADDRESSES, and this machine where the
# port is published on its loopback interface only (PUBLISHED_ON). nginx refuses to start with an address that is not one.
set -eu

trusted=$(echo "${PROXY_ADDRESSES:-}" | tr ',' ' ')
case "${PUBLISHED_ON:-}" in
  127.* | '[::1]' | ::1)
    # Requests of this machine come from the address of its bridge.
    trusted="$trusted $(ip route | awk '/^default/ { print $3; exit }')"
    ;;
esac

: > /tmp/trusted.conf
: > /tmp/trusted-networks.conf
for address in $trusted; do
  echo "set_real_ip_from $address;" >> /tmp/trusted.conf
  echo "$address 1;" >> /tmp/trusted-networks.conf
done
