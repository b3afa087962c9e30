# Asks a view, and reads a stream: sh django_site.sh http://127.0.0.1:7002
curl -s "$1/"

publisher=$1/streams/p/users
location=$(curl -s -i -X PUT "$publisher?request=10" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
curl -s -N "${publisher%/*}/$location/events?text=1" | grep '^[de]'
