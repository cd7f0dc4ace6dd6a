# Sourced by the tests of this folder: a data set for trainings.
# shellcheck shell=bash

# images FOLDER NAME COUNT: a small data set in the files of Fashion-MNIST; nobody asks what is on the pictures.
images() {
    local count
    count=$(printf '\\x%02x' $(($3 >> 8)) $(($3 & 255)))
    {
        printf '\0\0\x08\x03\0\0%b\0\0\0\x1c\0\0\0\x1c' "$count"
        yes 'a picture of nothing' | head -c $((784 * $3))
    } >"$1/$2-images-idx3-ubyte"
    {
        printf '\0\0\x08\x01\0\0%b' "$count"
        yes $'\x01\x02\x03\x04\x05\x06\x07' | head -c "$3" | tr '\n' '\0'
    } >"$1/$2-labels-idx1-ubyte"
}
