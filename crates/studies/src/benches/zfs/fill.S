# A boot sector that writes requests of 32 KiB one after the other to the second disk, through the
# BIOS, and says of each whether it was done. The source of CODE in program.rs:
#   as --32 fill.S -o fill.o && ld -m elf_i386 -Ttext 0x7c00 --oformat binary fill.o -o fill.bin
.code16
.globl _start
_start:
        xor     %ax, %ax
        mov     %ax, %ds
        mov     %ax, %ss
        mov     $0x7c00, %sp
        cld
        mov     $0x1000, %ax            # the data lie at 0x10000
        mov     %ax, %es
request:
        mov     lba, %eax
        inc     %eax
        xor     %di, %di
        mov     $64, %dx
sector:                                 # a sector is filled with its number plus one
        mov     $128, %cx
        rep stosl
        inc     %eax
        dec     %dx
        jnz     sector
        movw    $64, packet+2           # the BIOS leaves there how many it has done
        mov     $packet, %si
        mov     $0x4300, %ax            # extended write, without verification
        mov     $0x81, %dl              # the second disk
        int     $0x13
        mov     $'.', %al
        jnc     told
        mov     $'E', %al
told:
        out     %al, $0xe9
        addl    $64, lba
        decl    count
        jnz     request
        mov     $'D', %al
        out     %al, $0xe9
done:
        hlt
        jmp     done
        .balign 4, 0x90
packet: .byte   16, 0
        .word   64                      # sectors
        .word   0, 0x1000               # offset and segment of the data
lba:    .long   0, 0
        .org    504
count:  .long   0
        .org    510
        .word   0xaa55
