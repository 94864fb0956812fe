"""What goes over a network, counted by a proxy: gradients and values of 16 bits are half the bytes."""
from links import SMALL, ProxiedCluster
from program import main
from program.lives import Life, plan_of
from proxy import DOWN, UP

LAST_STEP = 40
NEAR = 0.05  # of the bytes, for headers and initial values


class Wire(Life):
    def carried(self, parts, **wires):
        changes = {f"train.{key}": wire for key, wire in wires.items()}
        plan = plan_of("sync", LAST_STEP, {**SMALL, **changes},
                       flags=["--transport=tcp", f"--parts={parts}"])
        cluster = ProxiedCluster(self.folder, plan, 1, 0)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        self.assert_done(cluster)
        self.assertEqual(cluster.proxy.trouble, [], cluster.story())
        return cluster.proxy.carried

    def test_rounded_numbers_are_half_the_bytes(self):
        for parts, wires in (("never", ("bf16", "fp16")), ("always", ("fp16", "bf16"))):
            whole = self.carried(parts)
            for wire, (key, up, down) in zip(wires, (("wire", 0.5, 1), ("wire_values", 1, 0.5))):
                with self.subTest(parts=parts, **{key: wire}):
                    half = self.carried(parts, **{key: wire})
                    self.assertAlmostEqual(half[UP] / whole[UP], up, delta=NEAR)
                    self.assertAlmostEqual(half[DOWN] / whole[DOWN], down, delta=NEAR)


if __name__ == "__main__":
    main()
