# A boot sector that reads and writes its disks as it is told over the serial line, through the BIOS,
# and says how long that took. The source of CODE in serve.rs:
#   as --32 serve.S -o serve.o && ld -m elf_i386 -Ttext 0x7c00 --oformat binary serve.o -o serve.bin
.code16
.globl _start
.set    SERIAL, 0x3f8
.set    CLOCK, 0x608                    # ACPI's timer: 3.579545 MHz, 24 bits (82371AB, 7.2)
_start:
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %ss
        mov     $0x7c00, %sp
        cld
        mov     $0x1000, %ax            # the data lie at 0x10000
        mov     %ax, %es
        xor     %di, %di
        mov     $0x4000, %cx
random: imul    $1664525, %eax, %eax    # as a compressor sees it
        add     $1013904223, %eax
        stosl
        loop    random
        mov     $'R', %al
        call    put
next:   mov     $SERIAL+5, %dx
        in      %dx, %al
        test    $1, %al
        jnz     take
        sti
        hlt                             # until the next tick
        jmp     next
take:   mov     $drive, %bx
        mov     $28, %cx
byte:   mov     $SERIAL+5, %dx
more:   in      %dx, %al
        test    $1, %al
        jz      more
        mov     $SERIAL, %dx
        in      %dx, %al
        mov     %al, (%bx)
        inc     %bx
        loop    byte
        xor     %eax, %eax
        mov     %eax, total
        mov     %eax, failed
        mov     %eax, done
request:
        mov     index, %eax
        imul    multiplier, %eax
        add     increment, %eax
        and     mask, %eax
        mov     %eax, index
        movzwl  sectors, %ecx
        mov     %cx, packet+2
        mul     %ecx
        mov     %eax, lba
        mov     $CLOCK, %dx
        in      %dx, %eax
        mov     %eax, since
        mov     $packet, %si
        mov     function, %ah           # 0x42 reads, 0x43 writes
        xor     %al, %al
        mov     drive, %dl
        int     $0x13
        jnc     fine
        incl    failed
fine:   mov     $CLOCK, %dx
        in      %dx, %eax
        sub     since, %eax
        and     $0xffffff, %eax
        add     %eax, total
        incl    done
        mov     limit, %eax
        cmp     %eax, total
        jae     told
        decl    count
        jnz     request
told:   mov     $'D', %al
        call    put
        mov     done, %eax
        call    number
        mov     failed, %eax
        call    number
        mov     total, %eax
        call    number
        jmp     next
number: mov     $8, %cx                 # a letter for each four bits, highest first
digit:  rol     $4, %eax
        push    %ax
        and     $15, %al
        add     $'a', %al
        call    put
        pop     %ax
        loop    digit
        ret
put:    push    %dx
        push    %ax
        mov     $SERIAL+5, %dx
full:   in      %dx, %al
        test    $0x20, %al
        jz      full
        pop     %ax
        mov     $SERIAL, %dx
        out     %al, %dx
        pop     %dx
        ret
        .balign 4, 0x90
packet: .byte   16, 0
        .word   0                       # sectors
        .word   0, 0x1000               # offset and segment of the data
lba:    .long   0, 0
since:  .long   0
total:  .long   0
failed: .long   0
done:   .long   0
# What is told, in this order.
drive:  .byte   0
function: .byte 0
sectors: .word  0
count:  .long   0
index:  .long   0
mask:   .long   0
multiplier: .long 0
increment: .long 0
limit:  .long   0
        .org    510
        .word   0xaa55
