"""."""
import click
command = click.Command("list")
