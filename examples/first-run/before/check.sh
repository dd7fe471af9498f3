# Says whether app.ini is safe where others can reach it.
if grep -q "debug = true" app.ini; then
    echo "app.ini is NOT safe: debug is on."
    exit 1
fi
echo "app.ini is safe: debug is off."
