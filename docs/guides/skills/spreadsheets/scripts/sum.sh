awk -F, '{sum += $2} END {print sum}' "$1"
