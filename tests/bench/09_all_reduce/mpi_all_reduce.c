/* MPI_Allreduce alone, for any MPI: bench_all_reduce compiles this with each one that --mpi names,
 * and runs it as a job of that MPI. It measures as the bench does: batches in place, on plain
 * memory.
 *
 *     mpirun -n 2 mpi_all_reduce FILE ROUNDS BYTES...    rank 0 writes what was measured to FILE
 *     mpi_all_reduce                                     prints the MPI's version
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_times = 500, trial = 4 };

static int rank, ranks;
static FILE* file; /* of rank 0 */

static void write_row(size_t bytes, unsigned long wrong, const char* of, double seconds) {
    if (rank == 0)
        fprintf(file, "mpi,%zu,%lu,%s,%.9g\n", bytes, wrong, of, seconds);
}

static void sum(float* data, size_t bytes) {
    MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
}

/* Returns how many elements are not exactly right, on all ranks: whole numbers that tell rank and
 * index, small enough for all sums to be exact. */
static unsigned long count_wrong(float* data, size_t bytes) {
    const size_t count = bytes / sizeof(float);
    unsigned long wrong = 0, wrong_of_all = 0;
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i % 4093 + (size_t)rank);
    sum(data, bytes);
    for (size_t i = 0; i < count; i++)
        wrong += data[i] != (float)(i % 4093 * (size_t)ranks + (size_t)(ranks * (ranks - 1) / 2));
    MPI_Allreduce(&wrong, &wrong_of_all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
    return wrong_of_all;
}

/* Makes `times` sums, sets the seconds of each, and returns their mean. */
static double batch(float* data, size_t bytes, int times, double* seconds) {
    double all = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    sum(data, bytes); /* where the ranks meet */
    for (int i = 0; i < times; i++) {
        const double begin = MPI_Wtime();
        sum(data, bytes);
        all += seconds[i] = MPI_Wtime() - begin;
    }
    return all / times;
}

/* Returns how many sums a batch has: enough for a few milliseconds, and no more than it has time
 * for. */
static int times_of_batch(float* data, size_t bytes, double* seconds) {
    const double fitting = 0.05 / batch(data, bytes, trial, seconds);
    const double most = (double)((16u << 20) / bytes);
    double times = fitting < most ? fitting : most;
    times = times < most_times ? times : most_times;
    int count = times > 2 ? (int)times : 2;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return count;
}

static void measure(size_t bytes, int rounds) {
    float* data = malloc(bytes);
    double seconds[most_times];
    if (data == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const unsigned long wrong = count_wrong(data, bytes);
    memset(data, 0, bytes); /* sums of sums would grow to infinity */
    const int times = times_of_batch(data, bytes, seconds);
    batch(data, bytes, times, seconds); /* a warm-up */
    for (int round = 0; round < rounds; round++) {
        const double mine = batch(data, bytes, times, seconds);
        double of_all = 0;
        MPI_Allreduce(&mine, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        write_row(bytes, wrong, "batch", of_all / ranks);
        for (int i = 0; i < times; i++)
            write_row(bytes, wrong, "sum", seconds[i]);
    }
    free(data);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        MPI_Get_library_version(version, &length);
        puts(version);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0 && (file = fopen(argv[1], "w")) == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        fputs("algorithm,bytes,wrong,of,seconds\n", file);
    for (int i = 3; i < argc; i++)
        measure(strtoull(argv[i], NULL, 10), atoi(argv[2]));
    const int is_lost = rank == 0 && fclose(file) != 0;
    MPI_Finalize();
    return is_lost;
}
