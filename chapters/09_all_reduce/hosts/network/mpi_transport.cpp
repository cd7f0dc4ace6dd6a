#include <stdexcept>

#include "09_all_reduce/hosts/network/transport.hpp"
#if defined(DDP_MPI)
#include "09_all_reduce/libraries/duplicate_world.hpp"
#endif

namespace ddp {

#if defined(DDP_MPI)

namespace {

class MpiTransfer final : public Transfer {
  public:
    // MPI sets `request_` to MPI_REQUEST_NULL when it is done.
    explicit MpiTransfer(bool is_receive) : is_receive_(is_receive) {}
    ~MpiTransfer() override {
        if (request_ == MPI_REQUEST_NULL)
            return;
        if (is_receive_)
            MPI_Cancel(&request_);
        MPI_Request_free(&request_);
    }

    bool is_done() override {
        int is_done = 1;
        if (request_ == MPI_REQUEST_NULL)
            return true;
        MPI_Status status;
        check_mpi(MPI_Test(&request_, &is_done, &status),
                  is_receive_ ? "a receive from another host" : "a send to another host");
        if (is_done != 0 && is_receive_)
            MPI_Get_count(&status, MPI_BYTE, &bytes_);
        return is_done != 0;
    }
    std::size_t bytes() const override { return static_cast<std::size_t>(bytes_); }

    MPI_Request* request() { return &request_; }

  private:
    const bool is_receive_;
    MPI_Request request_ = MPI_REQUEST_NULL;
    int bytes_ = 0;
};

class MpiTransport final : public Transport {
  public:
    explicit MpiTransport(MPI_Comm ranks) : ranks_(ranks) {
        MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
    }
    ~MpiTransport() override { MPI_Comm_free(&ranks_); }

    // MPI's synchronous send: an ordinary one is over, and the next may follow, while the receiver
    // has no place for it yet.
    std::unique_ptr<Transfer> send(int to, int channel, const std::byte* data,
                                   std::size_t bytes) override {
        auto transfer = std::make_unique<MpiTransfer>(false);
        check_mpi(MPI_Issend(data, static_cast<int>(bytes), MPI_BYTE, to, channel, ranks_,
                             transfer->request()),
                  "a send to another host");
        return transfer;
    }
    std::unique_ptr<Transfer> receive(int from, int channel, std::byte* data,
                                      std::size_t most_bytes) override {
        auto transfer = std::make_unique<MpiTransfer>(true);
        check_mpi(MPI_Irecv(data, static_cast<int>(most_bytes), MPI_BYTE, from, channel, ranks_,
                            transfer->request()),
                  "a receive from another host");
        return transfer;
    }

  private:
    MPI_Comm ranks_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport(Rank& rank) {
    int is_started = 0;
    MPI_Initialized(&is_started);
    if (is_started == 0)
        throw OptionError(
            "The ranks are on several hosts, and between hosts data goes by MPI, which has not "
            "started them: use mpirun, or srun --mpi=pmix.");
    return std::make_unique<MpiTransport>(duplicate_world(rank));
}

#else

std::unique_ptr<Transport> make_mpi_transport(Rank&) {
    throw OptionError(
        "The ranks are on several hosts, and between hosts data goes by MPI, without which this "
        "program was built: install Open MPI, build again and start it by mpirun.");
}

#endif

}  // namespace ddp
