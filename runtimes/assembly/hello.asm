        global  _start

        section .rodata
text:   db      "Hello, World!", 10
length: equ     $ - text

        section .text
_start: mov     eax, 1          ; write(1, text, length)
        mov     edi, 1
        lea     rsi, [rel text]
        mov     edx, length
        syscall
        mov     eax, 60         ; exit(0)
        xor     edi, edi
        syscall
