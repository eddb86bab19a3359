// Runs MSL that was compiled through metal_stdlib: one fiber for each thread of a threadgroup, simdgroups of
// 32, and meeting points that tell when threads do not meet.
//
// Reads jobs from the file of the first argument and writes what they left to that of the second. Each job
// runs twice, first on copies of its buffers, so that threadgroup memory does not happen to be zero.
//
// A job: case, grid[3], threadgroup[3], resident, seed, argument count; an argument: kind (0 a buffer, 1
// threadgroup memory), size (8 bytes), and a buffer's bytes. All other numbers have 4 bytes. An answer: status
// (0 done, 1 threads did not meet, 2 bytes beside a buffer were written), then each buffer's bytes.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

typedef void (*Entry)(const uint64_t* arguments);
extern Entry const entries[];

namespace {

enum State { RUNNING, AT_SIMDGROUP, AT_THREADGROUP, DONE };

struct Fiber {
    ucontext_t context;
    char* stack = nullptr;
    State state;
    uint32_t site;
    uint32_t index;
    uint32_t phase;
    uint32_t group;
};

struct Simdgroup {
    alignas(16) unsigned char bytes[2][32 * 32];
};

struct Group {
    uint32_t position[3];
    uint32_t size[3];
    uint32_t threads;
    uint32_t first;
    std::vector<Simdgroup> simdgroups;
    std::vector<std::vector<unsigned char>> memory;
    std::vector<uint64_t> arguments;
};

const size_t STACK = 1 << 20;
const size_t BESIDE = 4096;
const unsigned char GARBAGE = 0xa5;

std::vector<Fiber> fibers;
std::vector<Group> groups;
ucontext_t scheduler;
Fiber* current;
Entry entry;
uint32_t grid[3], nominal[3];

void leave(State state, uint32_t site) {
    current->state = state;
    current->site = site;
    swapcontext(&current->context, &scheduler);
}

Group& group() { return groups[current->group]; }

uint32_t dimension(const uint32_t v[3], uint32_t d) { return v[d]; }

void begin() {
    entry(group().arguments.data());
    leave(DONE, 0);
}

// Lets the waiting go on whose group is complete. Whether anybody can go on, and whether all is well.
bool release(const Group& g, bool& well) {
    bool any = false;
    uint32_t at_threadgroup = 0, done = 0;
    for (uint32_t first = 0; first < g.threads; first += 32) {
        const uint32_t end = first + 32 < g.threads ? first + 32 : g.threads;
        uint32_t waiting = 0, running = 0;
        bool same = true;
        for (uint32_t i = first; i < end; ++i) {
            const Fiber& f = fibers[g.first + i];
            running += f.state == RUNNING;
            done += f.state == DONE;
            at_threadgroup += f.state == AT_THREADGROUP;
            if (f.state == AT_SIMDGROUP) {
                if (waiting > 0) {
                    for (uint32_t j = first; j < i; ++j) {
                        const Fiber& other = fibers[g.first + j];
                        same &= other.state != AT_SIMDGROUP || other.site == f.site;
                    }
                }
                ++waiting;
            }
        }
        any |= running > 0;
        if (waiting > 0 && running == 0) {
            if (waiting < end - first || !same) {
                fprintf(stderr, "%u of %u lanes of a simdgroup meet, at one place: %d\n", waiting, end - first, same);
                well = false;
                return false;
            }
            for (uint32_t i = first; i < end; ++i) fibers[g.first + i].state = RUNNING;
            any = true;
        }
    }
    if (any || at_threadgroup == 0) return any;
    const uint32_t site = fibers[g.first].site;
    bool same = done == 0;
    for (uint32_t i = 0; i < g.threads; ++i) same &= fibers[g.first + i].site == site;
    if (!same) {
        fprintf(stderr, "%u of %u threads of a threadgroup meet, %u are done\n", at_threadgroup, g.threads, done);
        well = false;
        return false;
    }
    for (uint32_t i = 0; i < g.threads; ++i) fibers[g.first + i].state = RUNNING;
    return true;
}

// Runs the threadgroups of `groups` together.
bool run_groups(uint32_t seed) {
    uint32_t count = 0;
    for (Group& g : groups) {
        g.first = count;
        count += g.threads;
    }
    if (fibers.size() < count) fibers.resize(count);
    for (uint32_t k = 0; k < groups.size(); ++k) {
        for (uint32_t i = 0; i < groups[k].threads; ++i) {
            Fiber& f = fibers[groups[k].first + i];
            if (!f.stack) {
                f.stack = (char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                if (f.stack == MAP_FAILED) { perror("mmap"); exit(3); }
            }
            f.state = RUNNING;
            f.index = i;
            f.phase = 0;
            f.group = k;
            getcontext(&f.context);
            f.context.uc_stack.ss_sp = f.stack;
            f.context.uc_stack.ss_size = STACK;
            f.context.uc_link = nullptr;
            makecontext(&f.context, begin, 0);
        }
    }
    for (;;) {
        for (uint32_t i = 0; i < count; ++i) {
            Fiber& f = fibers[seed & 1 ? count - 1 - i : i];
            if (f.state != RUNNING) continue;
            current = &f;
            swapcontext(&scheduler, &f.context);
        }
        bool any = false, well = true;
        for (Group& g : groups) any |= release(g, well);
        if (!well) return false;
        if (!any) return true;
    }
}

struct Argument {
    uint32_t kind;
    uint64_t size;
    std::vector<unsigned char> bytes;
    unsigned char* place;
};

bool dispatch(const std::vector<Argument>& arguments, bool resident, uint32_t seed) {
    uint32_t n[3];
    for (int d = 0; d < 3; ++d) n[d] = (grid[d] + nominal[d] - 1) / nominal[d];
    const uint64_t all = uint64_t(n[0]) * n[1] * n[2];
    groups.clear();
    for (uint64_t k = 0; k < all; ++k) {
        Group g;
        g.position[0] = k % n[0];
        g.position[1] = k / n[0] % n[1];
        g.position[2] = k / n[0] / n[1];
        g.threads = 1;
        for (int d = 0; d < 3; ++d) {
            const uint32_t left = grid[d] - g.position[d] * nominal[d];
            g.size[d] = left < nominal[d] ? left : nominal[d];
            g.threads *= g.size[d];
        }
        g.simdgroups.resize((g.threads + 31) / 32);
        for (const Argument& a : arguments) {
            if (a.kind == 0) {
                g.arguments.push_back((uint64_t)a.place);
            } else {
                g.memory.emplace_back(a.size + 16, GARBAGE);
                g.arguments.push_back(((uint64_t)g.memory.back().data() + 15) & ~15ull);
            }
        }
        groups.push_back(std::move(g));
        if (!resident) {
            if (!run_groups(seed)) return false;
            groups.clear();
        }
    }
    return groups.empty() || run_groups(seed);
}

template <class T> T read(FILE* f) {
    T x;
    if (fread(&x, sizeof x, 1, f) != 1) { fprintf(stderr, "the jobs end early\n"); exit(3); }
    return x;
}

// Buffers end exactly where they are told to; bytes on both sides are watched.
void place(std::vector<Argument>& arguments) {
    for (Argument& a : arguments) {
        if (a.kind != 0) continue;
        unsigned char* memory = (unsigned char*)aligned_alloc(4096, (a.size + 2 * BESIDE + 4095) / 4096 * 4096);
        memset(memory, GARBAGE, a.size + 2 * BESIDE);
        a.place = memory + BESIDE;
        if (a.size) memcpy(a.place, a.bytes.data(), a.size);
    }
}

bool untouched(const std::vector<Argument>& arguments) {
    for (const Argument& a : arguments) {
        if (a.kind != 0) continue;
        for (size_t i = 0; i < BESIDE; ++i) {
            if (a.place[-1 - (std::ptrdiff_t)i] != GARBAGE || a.place[a.size + i] != GARBAGE) return false;
        }
    }
    return true;
}

void unplace(std::vector<Argument>& arguments) {
    for (Argument& a : arguments) if (a.kind == 0) free(a.place - BESIDE);
}

} // namespace

extern "C" {
void shim_barrier(uint32_t whole, uint32_t site) { leave(whole ? AT_THREADGROUP : AT_SIMDGROUP, site); }
void shim_yield() { leave(RUNNING, 0); }
bool shim_fails_for_no_reason() {
    static uint32_t count;
    return ++count % 3 == 0;
}
const unsigned char* shim_exchange(uint32_t site, const void* bytes, uint32_t size) {
    if (size > 32) { fprintf(stderr, "%u bytes are too many to exchange\n", size); exit(3); }
    Simdgroup& s = group().simdgroups[current->index / 32];
    const uint32_t phase = current->phase ^= 1;
    memcpy(s.bytes[phase] + current->index % 32 * 32, bytes, size);
    leave(AT_SIMDGROUP, site);
    return s.bytes[phase];
}
uint32_t shim_lanes() {
    const uint32_t left = group().threads - current->index / 32 * 32;
    return left >= 32 ? ~0u : (1u << left) - 1;
}
uint32_t shim_thread_position_in_threadgroup(uint32_t d) {
    const uint32_t i = current->index;
    const uint32_t* s = group().size;
    return d == 0 ? i % s[0] : d == 1 ? i / s[0] % s[1] : i / s[0] / s[1];
}
uint32_t shim_thread_position_in_grid(uint32_t d) {
    return group().position[d] * nominal[d] + shim_thread_position_in_threadgroup(d);
}
uint32_t shim_thread_index_in_threadgroup(uint32_t) { return current->index; }
uint32_t shim_threadgroup_position_in_grid(uint32_t d) { return group().position[d]; }
uint32_t shim_threads_per_threadgroup(uint32_t d) { return group().size[d]; }
uint32_t shim_dispatch_threads_per_threadgroup(uint32_t d) { return nominal[d]; }
uint32_t shim_threads_per_grid(uint32_t d) { return dimension(grid, d); }
uint32_t shim_threadgroups_per_grid(uint32_t d) { return (grid[d] + nominal[d] - 1) / nominal[d]; }
uint32_t shim_thread_index_in_simdgroup(uint32_t) { return current->index % 32; }
uint32_t shim_simdgroup_index_in_threadgroup(uint32_t) { return current->index / 32; }
uint32_t shim_simdgroups_per_threadgroup(uint32_t) { return (group().threads + 31) / 32; }
uint32_t shim_dispatch_simdgroups_per_threadgroup(uint32_t) {
    return (nominal[0] * nominal[1] * nominal[2] + 31) / 32;
}
uint32_t shim_thread_index_in_quadgroup(uint32_t) { return current->index % 4; }
uint32_t shim_quadgroup_index_in_threadgroup(uint32_t) { return current->index / 4; }
uint32_t shim_quadgroups_per_threadgroup(uint32_t) { return (group().threads + 3) / 4; }
uint32_t shim_dispatch_quadgroups_per_threadgroup(uint32_t) {
    return (nominal[0] * nominal[1] * nominal[2] + 3) / 4;
}

// Rounds once: the sum in double is made odd where it is not exact, and f16 then rounds it as it would the
// exact one.
uint16_t shim_half_fma(uint16_t a, uint16_t b, uint16_t c) {
    _Float16 x, y, z;
    memcpy(&x, &a, 2);
    memcpy(&y, &b, 2);
    memcpy(&z, &c, 2);
    const double product = double(x) * double(y), sum = product + double(z);
    const double part = sum - product, error = (product - (sum - part)) + (double(z) - part);
    double odd = sum;
    if (fabs(error) > 0) {
        uint64_t bits;
        memcpy(&bits, &sum, 8);
        if (!(bits & 1)) bits += (error < 0) == (sum < 0) ? 1 : -1;
        memcpy(&odd, &bits, 8);
    }
    // To float by cutting, with the lowest bit set where anything was lost, then to f16.
    float f = float(odd);
    if (double(f) != odd && std::isfinite(f)) {
        uint32_t bits;
        memcpy(&bits, &f, 4);
        if (fabs(double(f)) > fabs(odd)) bits -= 1;
        bits |= 1;
        memcpy(&f, &bits, 4);
    }
    const _Float16 r = _Float16(f);
    uint16_t result;
    memcpy(&result, &r, 2);
    return result;
}

// The functions that a device has of its own, in double and then rounded. Those of half turns take the turns
// away first, which is exact.
#define FUNCTION(NAME, RESULT) \
    float shim_##NAME(float argument) { const double x = argument; return float(RESULT); }
FUNCTION(exp, std::exp(x))
FUNCTION(exp2, std::exp2(x))
FUNCTION(exp10, std::pow(10.0, x))
FUNCTION(log, std::log(x))
FUNCTION(log2, std::log2(x))
FUNCTION(log10, std::log10(x))
FUNCTION(rsqrt, 1.0 / std::sqrt(x))
FUNCTION(sin, std::sin(x))
FUNCTION(cos, std::cos(x))
FUNCTION(tan, std::tan(x))
FUNCTION(sinpi, std::sin(M_PI * std::fmod(x, 2.0)))
FUNCTION(cospi, std::cos(M_PI * std::fmod(x, 2.0)))
FUNCTION(tanpi, std::tan(M_PI * std::fmod(x, 1.0)))
FUNCTION(asin, std::asin(x))
FUNCTION(acos, std::acos(x))
FUNCTION(atan, std::atan(x))
FUNCTION(sinh, std::sinh(x))
FUNCTION(cosh, std::cosh(x))
FUNCTION(tanh, std::tanh(x))
FUNCTION(asinh, std::asinh(x))
FUNCTION(acosh, std::acosh(x))
FUNCTION(atanh, std::atanh(x))
#define FUNCTION_OF_TWO(NAME, RESULT) \
    float shim_##NAME(float first, float second) { const double x = first, y = second; return float(RESULT); }
FUNCTION_OF_TWO(pow, std::pow(x, y))
FUNCTION_OF_TWO(powr, x < 0 ? NAN : std::pow(x, y))
FUNCTION_OF_TWO(atan2, std::atan2(x, y))
FUNCTION_OF_TWO(fmod, std::fmod(x, y))

// Float to bfloat16, to nearest even: older compiler libraries lack it.
__bf16 __truncsfbf2(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint16_t upper = uint16_t(bits >> 16);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        upper |= 0x40;
    } else {
        upper = uint16_t((bits + 0x7fff + (upper & 1)) >> 16);
    }
    __bf16 r;
    memcpy(&r, &upper, 2);
    return r;
}

// The copy engine, which copies at once; nobody can tell.
void* shim_engine_1d(uint64_t size, uint64_t, void* to, const void* from, uint64_t n) asm("air.simdgroup_async_copy_1d.p3i8.p1i8");
void* shim_engine_1d(uint64_t size, uint64_t, void* to, const void* from, uint64_t n) {
    memcpy(to, from, size * n);
    return to;
}
void* shim_engine_1d_out(uint64_t size, uint64_t, void* to, const void* from, uint64_t n) asm("air.simdgroup_async_copy_1d.p1i8.p3i8");
void* shim_engine_1d_out(uint64_t size, uint64_t, void* to, const void* from, uint64_t n) {
    memcpy(to, from, size * n);
    return to;
}
typedef uint64_t Two __attribute__((vector_size(16)));
typedef int64_t SignedTwo __attribute__((vector_size(16)));
static void* copy_2d(uint64_t size, void* to, uint64_t to_row, Two tile, const void* from, uint64_t from_row) {
    for (uint64_t r = 0; r < tile[1]; ++r) {
        memcpy((char*)to + r * to_row * size, (const char*)from + r * from_row * size, tile[0] * size);
    }
    return to;
}
void* shim_engine_2d(uint64_t size, uint64_t, void* to, uint64_t to_row, uint64_t, Two tile, const void* from, uint64_t from_row, uint64_t, Two, SignedTwo, int) asm("air.simdgroup_async_copy_2d.p3i8.p1i8");
void* shim_engine_2d(uint64_t size, uint64_t, void* to, uint64_t to_row, uint64_t, Two tile, const void* from, uint64_t from_row, uint64_t, Two, SignedTwo, int) {
    return copy_2d(size, to, to_row, tile, from, from_row);
}
void* shim_engine_2d_out(uint64_t size, uint64_t, void* to, uint64_t to_row, uint64_t, Two tile, const void* from, uint64_t from_row, uint64_t, Two, SignedTwo, int) asm("air.simdgroup_async_copy_2d.p1i8.p3i8");
void* shim_engine_2d_out(uint64_t size, uint64_t, void* to, uint64_t to_row, uint64_t, Two tile, const void* from, uint64_t from_row, uint64_t, Two, SignedTwo, int) {
    return copy_2d(size, to, to_row, tile, from, from_row);
}
void shim_wait(int, void**) asm("air.wait_simdgroup_events");
void shim_wait(int, void**) {}
}

int main(int, char** argv) {
    alarm(300);
    FILE* in = fopen(argv[1], "rb");
    FILE* out = fopen(argv[2], "wb");
    if (!in || !out) { perror("open"); return 3; }
    const uint32_t jobs = read<uint32_t>(in);
    for (uint32_t j = 0; j < jobs; ++j) {
        entry = entries[read<uint32_t>(in)];
        for (uint32_t& g : grid) g = read<uint32_t>(in);
        for (uint32_t& t : nominal) t = read<uint32_t>(in);
        const bool resident = read<uint32_t>(in) != 0;
        const uint32_t seed = read<uint32_t>(in);
        std::vector<Argument> arguments(read<uint32_t>(in));
        for (Argument& a : arguments) {
            a.kind = read<uint32_t>(in);
            a.size = read<uint64_t>(in);
            if (a.kind != 0) continue;
            a.bytes.resize(a.size);
            if (a.size && fread(a.bytes.data(), a.size, 1, in) != 1) { fprintf(stderr, "a buffer ends early\n"); return 3; }
        }
        uint32_t status = 0;
        for (int round = 0; round < 2; ++round) {
            place(arguments);
            const bool met = dispatch(arguments, resident, seed);
            status = !met ? 1 : !untouched(arguments) ? 2 : 0;
            if (round == 1 || status != 0) break;
            unplace(arguments);
        }
        fwrite(&status, 4, 1, out);
        for (const Argument& a : arguments) if (a.kind == 0 && a.size) fwrite(a.place, a.size, 1, out);
        unplace(arguments);
    }
    return fclose(out) == 0 ? 0 : 3;
}
