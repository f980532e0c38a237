// Text and binary files, positions, directories, archives, temporary files, structured text.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

type record struct {
	Number uint32
	Value  float64
}

func main() {
	_ = os.MkdirAll("data/deep/er", 0o755)
	_ = os.WriteFile("data/notes.txt", []byte("one\ntwo\nthree\n"), 0o600)
	notes := must(os.OpenFile("data/notes.txt", os.O_APPEND|os.O_RDWR, 0))
	fmt.Fprintln(notes, "four")
	_ = must(notes.Seek(4, io.SeekStart))
	line := must(bufio.NewReader(notes).ReadString('\n'))
	fmt.Printf("%q %d %v\n", line, must(notes.Stat()).Size(), must(notes.Stat()).Mode())

	records := must(os.Create("data/deep/records.bin"))
	for number := uint32(0); number < 100; number++ {
		_ = binary.Write(records, binary.LittleEndian, record{number, float64(number) / 4})
	}
	var one record
	_ = binary.Read(io.NewSectionReader(records, 12*42, 12), binary.LittleEndian, &one)
	fmt.Println(one, must(records.Stat()).Size())

	var squeezed bytes.Buffer
	writer := gzip.NewWriter(&squeezed)
	_, _ = io.Copy(writer, strings.NewReader(strings.Repeat("again ", 10000)))
	_ = writer.Close()
	fmt.Println(squeezed.Len() < 1000, len(must(io.ReadAll(must(gzip.NewReader(&squeezed))))))

	rows := must(csv.NewReader(strings.NewReader("name,note\nAda,\"says \"\"hi\"\", twice\"\n")).ReadAll())
	fmt.Println(rows[1][1])
	temporary := must(os.MkdirTemp("", "corpus-*"))
	fmt.Println(strings.HasPrefix(filepath.Base(temporary), "corpus-"), os.RemoveAll(temporary))
	_ = os.Symlink("notes.txt", "data/link")
	_ = filepath.WalkDir("data", func(path string, entry fs.DirEntry, err error) error {
		fmt.Print(path, " ", entry.Type().IsRegular(), "; ")
		return err
	})
	_ = os.RemoveAll("data")
	_, err := os.Stat("data")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	_ = os.WriteFile("result.json", must(json.Marshal(map[string]any{"kept": []any{1, 2.5, nil, true}})), 0o644)
}
