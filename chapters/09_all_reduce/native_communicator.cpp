// The Communicator over this book's own collectives.
#include "07_broadcast/broadcast.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "09_all_reduce/communicator.hpp"
#include "09_all_reduce/hosts/hosts_communicator.hpp"
#include "09_all_reduce/libraries/in_arena.hpp"
#include "09_all_reduce/one_shot.hpp"
#include "09_all_reduce/two_shot.hpp"
#include "09_all_reduce/with_type.hpp"

namespace ddp {
namespace {

// Which algorithm is decided by the size alone. Those of an all-reduce give the same bits.
class NativeCommunicator final : public Communicator {
  public:
    NativeCommunicator(Rank& rank, std::size_t arena_bytes, std::optional<double> timeout_s,
                       std::optional<LinkSpeed> link)
        : Communicator(rank), peers_(rank, arena_bytes, timeout_s, link) {}

    std::string kind() const override { return "native"; }
    void synchronize(Stream& stream) override { peers_.synchronize(stream); }

  private:
    const std::shared_ptr<SharedArena>& arena() override { return peers_.arena(); }

    void broadcast_elements(const Elements& elements, int root, Stream& stream,
                            const std::string& name) override {
        const AnyArray array{elements.output, elements.count, bytes_of(elements.type),
                             name_of(elements.type)};
        if (elements.bytes() <= tree_bytes)
            tree_broadcast(peers_, array, root, stream, name);
        else
            chain_broadcast(peers_, array, root, stream, name, default_slices(elements.bytes()));
    }

    void reduce_elements(const Elements& elements, ReduceOp op, int root, Stream& stream,
                         const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            tree_reduce(peers_, static_cast<const T*>(elements.input),
                        static_cast<T*>(elements.output), elements.count, op, root, stream, name);
        });
    }

    void all_reduce_elements(const Elements& elements, ReduceOp op, Stream& stream,
                             const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            const auto* input = static_cast<const T*>(elements.input);
            auto* output = static_cast<T*>(elements.output);
            if (elements.bytes() <= one_shot_bytes) {
                require_in_arena(*peers_.arena(), input, elements.bytes(), "all_reduce");
                require_in_arena(*peers_.arena(), output, elements.bytes(), "all_reduce");
                one_shot_all_reduce(peers_, input, output, elements.count, op, stream, name);
                return;
            }
            two_shot_all_reduce(peers_, input, output, elements.count, op, stream, name);
        });
    }

    void reduce_scatter_elements(const Elements& elements, ReduceOp op, Stream& stream,
                                 const std::string& name) override {
        with_type(elements.type, [&]<class T>() {
            ddp::reduce_scatter(peers_, static_cast<const T*>(elements.input),
                                static_cast<T*>(elements.output), elements.count, op, stream, name);
        });
    }

    void all_gather_elements(const Elements& elements, Stream& stream,
                             const std::string& name) override {
        ddp::all_gather(peers_,
                        AnyArray{const_cast<void*>(elements.input), elements.count,
                                 bytes_of(elements.type), name_of(elements.type)},
                        elements.output, stream, name);
    }

    void send_elements(const Elements& elements, int to, Stream& stream,
                       const std::string& name) override {
        peers_.send_bytes(elements.input, elements.count, bytes_of(elements.type),
                          name_of(elements.type), to, stream, name);
    }
    void receive_elements(const Elements& elements, int from, Stream& stream,
                          const std::string& name) override {
        peers_.receive_bytes(elements.output, elements.count, bytes_of(elements.type),
                             name_of(elements.type), from, stream, name);
    }

    static constexpr std::size_t one_shot_bytes = 2 << 10, tree_bytes = 16 << 10;

    Peers peers_;
};

}  // namespace

std::unique_ptr<Communicator> make_native_communicator(Rank& rank, std::size_t arena_bytes,
                                                       std::optional<double> timeout_s,
                                                       std::optional<LinkSpeed> link) {
    if (rank.job().has_several_hosts())
        return make_hosts_communicator(rank, arena_bytes, make_mpi_transport(rank), timeout_s);
    return std::make_unique<NativeCommunicator>(rank, arena_bytes, timeout_s, link);
}

}  // namespace ddp
