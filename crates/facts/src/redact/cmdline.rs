//! Redacts the kernel command line (kernel-parameters.txt): keeps harmless parameters, and only the names of others.
//! The command line may contain secrets, such as keys of volumes, a log server, or the address of a cloud-init seed.

use super::mount_options;
use crate::harmless::LEFT_OUT;
use assay_model::secrets::{WITHHELD, is_plain, names_a_secret};

/// Kernel parameters whose values are harmless: numbers, words and lists of them.
pub(crate) const PLAIN: &str = "
acpi acpi_backlight acpi_enforce_resources acpi_rsdp add_efi_memmap amd_iommu amd_pstate apic apparmor
audit audit_backlog_limit biosdevname boot_delay bootdebug cgroup_disable cgroup_enable cgroup_memory
cgroup_no_v1 clearcpuid clocksource cma console consoleblank coredump_filter crashkernel debug
debugfs default_hugepagesz delayacct dis_ucode_ldr earlycon earlyprintk edd efi elevator emergency
enforcing fastboot fips forcepae fsck.mode fsck.repair gather_data_sampling hardened_usercopy
hibernate highres hpet hugepages hugepagesz hugetlb_cma hugetlb_free_vmemmap hw_protection idle
ignore_loglevel init_on_alloc init_on_free integrity intel_iommu intel_pstate iomem iommu irqaffinity
irqfixup irqpoll isolcpus kaslr kasan kpti kptr_restrict l1d_flush l1tf log_buf_len loglevel lockdown
lpj lsm max_cstate max_loop maxcpus mce mds mem memhp_default_state memmap memtest migration_debug
min_addr mitigations mmio_stale_data module_blacklist modprobe.blacklist nmi_watchdog no_console_suspend
no_timer_check noapic noautogroup nodelayacct noefi noexec nofpu nogbpages nohibernate nohlt nohugeiomap
nohz nohz_full noibpb noibrs nokaslr nolapic nomce nomodeset nomodule nopat nopcid nopti nopv nopvspin
noreplace-smp noresume nosgx nosmap nosmep nosmp nosmt nosoftlockup nospec_store_bypass_disable
nospectre_bhb nospectre_v1 nospectre_v2 nosplash nosplit nosync noswapaccount nowatchdog noxsave nox2apic
nr_cpus numa numa_balancing numa_cma oops page_alloc.shuffle page_owner page_poison panic
panic_on_taint panic_on_warn panic_print pause_on_oops pci pcie_aspm pcie_port_pm pcie_ports plymouth.enable
possible_cpus preempt processor.max_cstate profile psi pti quiet raid raid=noautodetect ramdisk_size
random.trust_bootloader random.trust_cpu randomize_kstack_offset rcu_nocb_poll rcu_nocbs rd.auto rd.debug rd.dm
rd.luks rd.lvm rd.md rd.plymouth rd.retry rd.shell rd.timeout rd.udev.log_level rd.udev.log_priority
reg_file_data_sampling resume_offset retbleed rhgb ro rootdelay rootfstype rootwait rw security selinux
skew_tick slab_nomerge slub_debug smt softlockup_panic spec_rstack_overflow spec_store_bypass_disable
spectre_bhi spectre_v2 spectre_v2_user splash split_lock_detect srbds swapaccount swiotlb systemd.log_level
systemd.show_status systemd.unified_cgroup_hierarchy systemd.legacy_systemd_cgroup_controller
sysrq_always_enabled text thash_entries threadirqs topology transparent_hugepage trace_clock tsa tsc tsx
tsx_async_abort udev.log_level udev.log_priority unknown_nmi_panic usbcore.autosuspend vdso verbose vga
vmalloc vsyscall watchdog workqueue.power_efficient x2apic_phys zfsforce zfs_force";

/// Modules whose parameters are harmless, both on the command line (before a dot) and in modprobe.d(5).
pub(crate) const MODULES: &str = "
aacraid acpi acpi_cpufreq ahci amd_iommu amd_pstate amdgpu ast bcache be2net blk_mq bnx2 bnx2x bnxt_en bonding
brd btrfs cpufreq cpuidle cxgb4 dm_cache dm_crypt dm_mod dm_multipath dm_raid dm_thin_pool dm_verity drm
drm_kms_helper e1000e edac_core efi_pstore ena ext4 floppy fuse hpsa hv_storvsc hv_vmbus hyperv_fb i40e i8042
i915 iTCO_wdt ice igb igc intel_idle intel_iommu intel_pstate iommu ipv6 isci iwlwifi ixgbe jbd2 kernel kvm
kvm_amd kvm_intel libahci libata lockd loop lpfc mce md_mod megaraid_sas mgag200 mlx4_core mlx4_en mlx5_core module mpt2sas mpt3sas
mptsas mvsas nbd net nfs nfsd nouveau nvidia nvidia_drm null_blk nvme nvme_core nvme_rdma nvme_tcp overlay page_alloc
pcie_aspm pciehp pcspkr pm80xx printk processor psmouse pstore qed qede qla2xxx r8169 radeon raid1 raid10 raid456
ramoops random rcupdate rcutree sata_nv sched scsi_mod sd_mod sg slub smartpqi snd_hda_intel softdog spl srcutree
st sunrpc tcp_bbr tcp_cubic tg3 thunderx2_pmu tls tpm tpm_tis transparent_hugepage uas usb_storage usbcore
usbhid vfio vfio_iommu_type1 vfio_pci vhost vhost_net virtio_blk virtio_net virtio_pci virtio_scsi vmw_pvscsi vt watchdog
workqueue xen_blkfront xen_netfront xfs zfs zram zswap";

/// Parameters whose value is a device.
const DEVICES: [&str; 4] = ["root", "resume", "boot", "usr"];
/// Parameters whose value is the path of a file or volume on this machine.
const PLACES: [&str; 6] = [
    "BOOT_IMAGE",
    "init",
    "initrd",
    "rdinit",
    "rd.lvm.lv",
    "rd.lvm.vg",
];
/// Parameters whose value identifies this machine or another machine.
const IDENTITY: [&str; 4] = ["ip", "hostname", "systemd.hostname", "nfsroot"];

/// Redacts the command line. The text after `--` is for init and is dropped. With `identity`, host names and addresses
/// are kept, but no secrets.
pub(crate) fn cmdline(text: &str, identity: bool) -> String {
    let mut kept = Vec::new();
    for word in split_words(text) {
        if word == "--" {
            kept.push(format!("-- {LEFT_OUT}"));
            break;
        }
        kept.push(clean_parameter(word, identity));
    }
    // A parameter that was cleaned before may consist of several words.
    kept.join(" ")
}

/// Returns whether the parameter of a module never contains a secret, and its value is a number, a word or a list.
pub(crate) fn module_value(module: &str, parameter: &str, value: &str) -> bool {
    let module = module.replace('-', "_");
    contains_name(MODULES, &module) && !names_a_secret(parameter) && is_plain(value)
}

fn contains_name(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// Splits the text into words as the kernel does: blanks within quotation marks do not separate words (lib/cmdline.c,
/// next_arg).
fn split_words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let left_out = [LEFT_OUT, WITHHELD, NAME, WORD].iter().find_map(|mark| {
            // Marks of an earlier cleaning follow `=` or stand alone.
            let at = rest.find(mark)?;
            let blank = rest.find(char::is_whitespace)?;
            let name = &rest[..at];
            let alone = at == 0 || name.ends_with('=');
            let end = at + mark.len();
            let ends = rest[end..].is_empty() || rest[end..].starts_with([' ', '=']);
            (blank > at && alone && ends).then_some(end)
        });
        let mut quoted = false;
        let mut from = left_out.unwrap_or(0);
        if from > 0 && rest[from..].starts_with('=') {
            // `(name withheld)=(value withheld)`
            let value = rest[from + 1..].starts_with(WITHHELD);
            from += 1 + if value { WITHHELD.len() } else { 0 };
        }
        let end = rest[from..].find(|c: char| {
            if c == '"' {
                quoted = !quoted;
            }
            c.is_whitespace() && !quoted
        });
        let end = end.map_or(rest.len(), |end| from + end);
        found.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    found
}

/// Replaces the name of a parameter that may itself be a secret.
const NAME: &str = "(name withheld)";
/// Replaces a word of the command line that has an unknown form.
const WORD: &str = "(word withheld)";

fn clean_parameter(word: &str, identity: bool) -> String {
    let Some((name, value)) = word.split_once('=') else {
        let known = contains_name(PLAIN, word) || word == LEFT_OUT;
        return if known { word } else { WORD }.to_owned();
    };
    if name == "rootflags" {
        // A blank would end the parameter.
        return format!("{name}={}", mount_options(value).replace(' ', "-"));
    }
    if is_harmless(name, value) || (identity && IDENTITY.contains(&name) && is_host(value)) {
        return word.to_owned();
    }
    let name = if is_name(name) { name } else { NAME };
    format!("{name}={WITHHELD}")
}

fn is_harmless(name: &str, value: &str) -> bool {
    if DEVICES.contains(&name) {
        return is_device(value);
    }
    if PLACES.contains(&name) {
        return is_place(value);
    }
    if contains_name(PLAIN, name) {
        return is_plain(value);
    }
    match name.split_once('.') {
        Some((module, parameter)) => module_value(module, parameter, value),
        None => false,
    }
}

/// Returns whether the value is a device: `/dev/vda1`, `UUID=…`, `ZFS=rpool/ROOT/debian`; not `nfs:…`, `live:http://…`.
fn is_device(value: &str) -> bool {
    let kinds = ["UUID=", "PARTUUID=", "LABEL=", "PARTLABEL=", "ZFS="];
    let bare = kinds.iter().find_map(|kind| value.strip_prefix(kind));
    match bare {
        Some(rest) => is_plain(rest),
        None => value == "zfs:AUTO" || (value.starts_with("/dev/") && is_place(value)),
    }
}

fn is_place(value: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "_.,+/~()\\-".contains(c);
    !value.is_empty() && value.len() <= 200 && value.chars().all(known) && !value.contains("//")
}

fn is_host(value: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "_.,:/[]-".contains(c);
    value.len() <= 200 && value.chars().all(known) && !value.contains("//")
}

/// Returns whether a parameter name was probably chosen by a person and not generated: the name is in lower case and
/// has at most 40 characters and few digits.
fn is_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    let digits = name.chars().filter(char::is_ascii_digit).count();
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && digits <= 3
        && name.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(text: &str) -> String {
        let once = cmdline(text, false);
        assert_eq!(cmdline(&once, false), once, "cleaned twice");
        once
    }

    #[test]
    fn what_explains_figures_stays_as_it_is() {
        for line in [
            "BOOT_IMAGE=/vmlinuz-6.1.0-18-amd64 root=UUID=0d5e-1f ro quiet",
            "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-5.14.0 root=/dev/mapper/cs-root rd.lvm.lv=cs/root rhgb quiet",
            "root=ZFS=rpool/ROOT/debian mitigations=off intel_idle.max_cstate=1 processor.max_cstate=1",
            "isolcpus=managed_irq,domain,2-7 nohz_full=2-7 rcu_nocbs=2-7 hugepagesz=1G hugepages=16",
            "zfs.zfs_arc_max=8589934592 nvme_core.default_ps_max_latency_us=0 nvme.poll_queues=4",
            "console=ttyS0,115200n8 crashkernel=512M-:192M transparent_hugepage=never",
            "rootflags=subvol=/@,compress=zstd:1 rootfstype=btrfs",
            "kvm-intel.nested=1 scsi_mod.use_blk_mq=1 spectre_v2=off",
        ] {
            assert_eq!(clean(line), line);
        }
    }

    #[test]
    fn what_is_not_known_keeps_its_name_only() {
        for (given, expected) in [
            (
                "netconsole=6666@10.0.0.1/eth0,514@10.9.9.9/",
                "netconsole=(value withheld)",
            ),
            ("vendor.api_key=Canary", "vendor.api_key=(value withheld)"),
            ("luks.pw=Canary", "luks.pw=(value withheld)"),
            ("ds=nocloud;s=http://u:Canary@h/", "ds=(value withheld)"),
            ("root=nfs:10.0.0.1:/srv", "root=(value withheld)"),
            ("root=live:http://u:p@h/x.iso", "root=(value withheld)"),
            ("lsm=http://u:p@h/", "lsm=(value withheld)"),
            ("foo=\"a Canary b\" quiet", "foo=(value withheld) quiet"),
            ("Q2FuYXJ5Q2FuYXJ5==", "(name withheld)=(value withheld)"),
            ("hunter2", "(word withheld)"),
            ("nvme.auth_key=Canary", "nvme.auth_key=(value withheld)"),
            ("ip=10.0.0.2::::box", "ip=(value withheld)"),
            ("quiet -- --token abc", "quiet -- (left out)"),
        ] {
            assert_eq!(clean(given), expected);
        }
        let named = cmdline("ip=10.0.0.2::::box luks.pw=x hostname=box", true);
        assert_eq!(
            named,
            "ip=10.0.0.2::::box luks.pw=(value withheld) hostname=box"
        );
    }

    #[test]
    fn modules_that_are_not_known_tell_nothing() {
        assert!(module_value("zfs", "zfs_arc_max", "8589934592"));
        assert!(module_value("kvm-intel", "nested", "Y"));
        assert!(!module_value("vendor_agent", "enrol", "Canary"));
        assert!(!module_value("nvme", "dhchap_secret", "DHHC-1"));
    }

    proptest! {
        #[test]
        fn cleaning_twice_changes_nothing(
            given in "([a-zA-Z0-9=\" .,:/()-]|\\(value withheld\\)|\\(word withheld\\)|root=|\\PC){0,40}"
        ) {
            let once = cmdline(&given, false);
            prop_assert_eq!(cmdline(&once, false), once);
        }
    }
}
